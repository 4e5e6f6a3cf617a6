# SPDX-License-Identifier: Apache-2.0
# Allocations of a JVM that runs already, by its own flight recorder: at the right site, with nothing left
# behind; and a JVM that would end by SIGQUIT is left alone.
# shellcheck disable=SC2034 # common.bash has it
ASSAY_SAMPLERS=any
. "$ROOT/tests/capture/common.bash"
need java javac python3

mkdir java
cat >java/Churn.java <<'END'
public class Churn {
    static volatile Object sink;
    static void allocate() { sink = new byte[5000]; }
    public static void main(String[] arguments) throws Exception {
        System.out.println("started");
        for (long i = 0;; i++) {
            allocate();
            if (i % 1000 == 0) Thread.sleep(1);
        }
    }
}
END
javac -nowarn -d java java/Churn.java
run() { # OPTION...: sets `jvm`
    : >started
    java -Xmx64m "$@" -cp java Churn >started &
    jvm=$!
    started+=("$jvm")
    wait_until 60 test -s started
}
run
if ! "$ASSAY" record --mode heap -d 2 -p "$jvm" -o churn.pb.gz 2>said; then
    cat said
    exit 1
fi
cat said
"$ASSAY" report -n 0 -t alloc_space -f json churn.pb.gz >churn.json
check "allocations are at their site" python3 -c '
import json
rows = {row["function"]: row["cum"] for row in json.load(open("churn.json"))["rows"]}
print(rows)
assert rows["Churn.allocate"] > 0.9 * rows["Churn.main"] > 0'
check "says how" grep -q "by its JVM's flight recorder" said
check "again, on the same socket" "$ASSAY" record -q --mode heap -d 1 -p "$jvm" -o again.pb.gz
check "no recording is left" bash -c "! jcmd $jvm JFR.check | grep -q 'name=assay'"
inner=$(awk '/^NSpid:/ { print $NF }' "/proc/$jvm/status")
check "no file is left" test ! -e "/tmp/.attach_pid$inner"
end_process "$jvm"

# It doesn't catch the signal.
run -Xrs
"$ASSAY" record --mode heap -d 1 -p "$jvm" -o none.pb.gz 2>said || true
cat said
check "a JVM without signals goes on" kill -0 "$jvm"
end_process "$jvm"
run -XX:+DisableAttachMechanism
"$ASSAY" record --mode heap -d 1 -p "$jvm" -o none.pb.gz 2>said || true
cat said
check "a JVM that refuses goes on" kill -0 "$jvm"
check "... and the reason is given" grep -q DisableAttachMechanism said
