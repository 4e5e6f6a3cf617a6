#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Symbol indexes against llvm-symbolizer, addr2line and eu-addr2line: functions, inlined functions,
# files and lines of random addresses, for all the ways in which compilers and tools keep debug
# information. $COUNT addresses of each binary.

for tool in llvm-symbolizer addr2line eu-addr2line readelf objcopy strip c++filt c++; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to compare with."
        exit 77
    }
done
count=${COUNT:-700}
cases=0

# compare FILE [PEER-FILE [ALLOWED]]: PEER-FILE is the same program where the peers can read it.
compare() {
    "$ASSAY" debuginfo index "$1" -o "$1.symbols" 2>"$1.said" || {
        cat "$1.said"
        exit 1
    }
    python3 "$ROOT/tests/peers/compare_index.py" "$ASSAY" "$1.symbols" "${2:-$1}" "$count" \
        "${3:-2}"
    cases=$((cases + 1))
}
# expect FILE TEXT: what the index says of itself.
expect() {
    [[ $(cat "$1.said") == *"$2"* ]] || {
        echo "The index of $1 doesn't say \"$2\":"
        cat "$1.said"
        exit 1
    }
}

. "$ROOT/tests/peers/programs.bash"

# A program of some size.
cp "$ASSAY" large
compare large

compilers=("gcc g++")
! command -v clang++ >/dev/null || compilers+=("clang clang++")
for pair in "${compilers[@]}"; do
    read -r cc cxx <<<"$pair"
    for optimize in -O0 -O2 "-O3 -flto"; do
        # clang's link-time optimisation takes a linker that knows it.
        [[ $optimize != *flto* || $cc == gcc ]] || command -v ld.lld >/dev/null || continue
        for version in 4 5; do
            name=$cc${optimize// /}-dwarf$version
            "$cc" -gdwarf-$version $optimize -o "$name-c" small.c
            compare "$name-c"
            "$cxx" -gdwarf-$version $optimize -o "$name-cc" small.cc
            compare "$name-cc"
        done
    done
    for version in 4 5; do
        name=$cc-split$version
        "$cxx" -gdwarf-$version -O2 -gsplit-dwarf -c -o "$name.o" small.cc
        "$cc" -gdwarf-$version -O2 -gsplit-dwarf -c -o "$name-c.o" small.c -Dmain=other_main
        "$cxx" -gdwarf-$version -O2 -gsplit-dwarf -o "$name" "$name.o" "$name-c.o"
        compare "$name"
        ! grep -E "are missing|not found" "$name.said" || exit 1
        # A package that an upload makes of the files says the same as they do.
        mkdir -p "sent-$name"
        "$DUMP_SYMBOLS" --package "$name" >"sent-$name/program.dwp"
        cp "$name" "sent-$name/program"
        for part in "$name"*.dwo; do mv "$part" "$part.away"; done
        "$ASSAY" debuginfo index "sent-$name/program" -o "sent-$name.symbols" 2>"sent-$name.said"
        ! grep -E "are missing|not found" "sent-$name.said" || exit 1
        for part in "$name"*.dwo.away; do mv "$part" "${part%.away}"; done
        python3 "$ROOT/tests/peers/compare_index.py" "$ASSAY" "sent-$name.symbols" "$name" "$count" 2
        cases=$((cases + 1))
        # Of what gcc splits in DWARF 5, binutils 2.40 dies and LLVM 14 never ends: that package is
        # made here. Who knows gcc's own split of DWARF 4 is binutils.
        if [ "$name" = gcc-split5 ]; then
            pack=(python3 "$ROOT/tests/peers/make_dwp.py" packed.dwp "$name".dwo "$name"-c.dwo)
        elif [ "$cc" = gcc ]; then
            pack=(timeout 20 dwp -e "$name" -o packed.dwp)
        else
            pack=(timeout 60 llvm-dwp -e "$name" -o packed.dwp)
        fi
        if "${pack[@]}" 2>pack.txt || [ "$name" = gcc-split5 ]; then
            mkdir -p "packed-$name"
            cp "$name" "packed-$name/program"
            mv packed.dwp "packed-$name/program.dwp"
            for part in "$name"*.dwo; do mv "$part" "$part.away"; done
            compare "packed-$name/program"
            ! grep -E "are missing|not found" "packed-$name/program.said" || exit 1
            # Without either, lines and symbols are left, and the index says what is missing.
            "$ASSAY" debuginfo index "$name" -o lost.symbols 2>"$name.said"
            expect "$name" "2 of 2 units are in files (.dwo or .dwp) that are missing"
            for part in "$name"*.dwo.away; do mv "$part" "${part%.away}"; done
        fi
    done
done

g++ -gdwarf-5 -O2 -o whole small.cc
for version in 2 3; do
    gcc -gdwarf-$version -gstrict-dwarf -O2 -o dwarf$version small.c
    compare dwarf$version
done
g++ -gdwarf-4 -O1 -fdebug-types-section -o typed small.cc
compare typed
for method in zlib zlib-gnu zstd; do
    # Not every objcopy knows every method.
    objcopy --compress-debug-sections=$method whole "packed-$method" 2>/dev/null || continue
    compare "packed-$method" whole
done

objcopy --only-keep-debug whole linked.debug
strip -o linked whole
objcopy --add-gnu-debuglink=linked.debug linked
compare linked whole
expect linked "inlined functions, lines"
strip -o bare whole
compare_pair() {
    "$ASSAY" debuginfo index bare --debug linked.debug -o bare.symbols 2>bare.said
    python3 "$ROOT/tests/peers/compare_index.py" "$ASSAY" bare.symbols whole "$count"
}
compare_pair
"$ASSAY" debuginfo index bare -o bare.symbols 2>bare.said
expect bare "starts of functions only"
g++ -O2 -rdynamic -s -o exporting small.cc
"$ASSAY" debuginfo index exporting -o exporting.symbols 2>exporting.said
expect exporting "dynamic symbols only"
g++ -O2 -g -o another small.cc -Wl,--build-id=0x1234
! "$ASSAY" debuginfo index another --debug linked.debug -o x.symbols 2>another.said || exit 1
expect another "its build ID is $(readelf -n whole | sed -n 's/.*Build ID: //p'), the binary's is 1234"

if command -v dwz >/dev/null; then
    cp whole first
    cp whole second
    dwz -m shared -M "$PWD/shared" first second
    compare first whole
    cp whole alone
    dwz alone
    compare alone whole
fi

if rustc --version >/dev/null 2>&1; then
    rustc -g -C opt-level=2 -o rust small.rs
    compare rust
fi

cat >small.go <<'GO'
package main
import ("fmt"; "os"; "sort"; "strings")
type pair struct { word string; count int }
func (p pair) String() string { return fmt.Sprintf("%s=%d", p.word, p.count) }
func count(words []string) (pairs []pair) {
	counts := map[string]int{}
	for _, word := range words { counts[strings.ToLower(word)]++ }
	for word, n := range counts { pairs = append(pairs, pair{word, n}) }
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].count > pairs[j].count })
	return
}
func main() { for _, p := range count(os.Args) { fmt.Println(p) } }
GO
while read -r version go; do
    CGO_ENABLED=0 "$go" build -o "$version-whole" small.go
    compare "$version-whole" "$version-whole" 20
    CGO_ENABLED=0 "$go" build -ldflags "-s -w" -o "$version-bare" small.go
    # The same code at the same addresses, with nothing but Go's own table.
    compare "$version-bare" "$version-whole" 20
    expect "$version-bare" "inlined functions, lines"
done < <(bash "$ROOT/tests/toolchains.sh" go)
echo "$cases binaries"
[ "$cases" -ge 20 ]
