# SPDX-License-Identifier: Apache-2.0
# Hosts as network namespaces, each with a cable to one switch. Sourced after common.bash.
[ "$(id -u)" = 0 ] && type ip nsenter unshare >/dev/null 2>&1 && unshare --net true 2>/dev/null ||
    { echo "Network namespaces take root and iproute2."; exit 77; }

# make_host NAME ADDRESS: its shell is `on NAME COMMAND...`. The first one has the switch.
declare -A hosts
switch=
make_host() {
    unshare --net sleep infinity &
    hosts[$1]=$!
    agents+=("$!")
    local tries=0
    until [ "$(readlink "/proc/${hosts[$1]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do
        [ $((tries += 1)) -lt 200 ]
        sleep 0.02
    done
    on "$1" ip link set lo up
    if [ -z "$switch" ]; then
        switch=$1
        on "$switch" ip link add switch type bridge
        on "$switch" ip link set switch up
        on "$switch" ip address add "$2/24" dev switch
        return
    fi
    on "$switch" ip link add "to-$1" type veth peer name cable netns "${hosts[$1]}"
    on "$switch" ip link set "to-$1" master switch up
    on "$1" ip address add "$2/24" dev cable
    on "$1" ip link set cable up
}

on() {
    local host=$1
    shift
    nsenter --net="/proc/${hosts[$host]}/ns/net" "$@"
}

# cut HOST, mend HOST: by a firewall where there is one, which drops without a word; else by the cable.
cut() {
    if type nft >/dev/null 2>&1 && on "$1" nft 'add table inet cut' 2>/dev/null; then
        on "$1" nft 'add chain inet cut out { type filter hook output priority 0; policy drop; }'
    else
        on "$1" ip link set cable down
    fi
}
mend() {
    if type nft >/dev/null 2>&1 && on "$1" nft 'list table inet cut' >/dev/null 2>&1; then
        on "$1" nft 'delete table inet cut'
    else
        on "$1" ip link set cable up
    fi
}
