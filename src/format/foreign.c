// SPDX-License-Identifier: Apache-2.0
// Files that people try to read, and that are none of our formats: what they are, and what to do
// with them. Looked at only when no format takes the file.

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "format/format.h"

#define WORDS_MAX 3

static const struct foreign {
    const char *magic; /* at the beginning; NULL: any */
    size_t magic_length;
    const char *words[WORDS_MAX + 1]; /* all of them among the first bytes; NULL after the last */
    const char *what;                 /* "X is WHAT." */
} foreign[] = {
    {"PK\x03\x04", 4, {NULL}, "a ZIP archive; unpack it and read the profiles in it"},
    {"PK\x05\x06", 4, {NULL}, "an empty ZIP archive"},
    {"\xfd"
     "7zXZ",
     5,
     {NULL},
     "compressed with xz; unpack it with `xz -d`"},
    {"BZh", 3, {NULL}, "compressed with bzip2; unpack it with `bzip2 -d`"},
    {"\x04\x22\x4d\x18",
     4,
     {NULL},
     "compressed with lz4; unpack it with `lz4 -d`, or if it is a memray capture, convert it with "
     "`memray transform speedscope FILE -o x.json`"},
    {"7z\xbc\xaf", 4, {NULL}, "a 7-Zip archive; unpack it and read the profiles in it"},
    {"2ELIFREP",
     8,
     {NULL},
     "a perf.data file of a big-endian machine; read the output of `perf script -i FILE`"},
    {"\x7f"
     "ELF",
     4,
     {NULL},
     "an ELF binary, not a profile"},
    {"PERFFILE",
     8,
     {NULL},
     "a perf.data file of version 1, from before 2010; read the output of `perf script -i FILE`"},
    {"SIMPLEPERF",
     10,
     {NULL},
     "a report of Android's simpleperf; convert its perf.data with `stackcollapse.py -i perf.data "
     "> "
     "x.folded`, which comes with it"},
    {"JAVA PROFILE ",
     13,
     {"created", "ASCII Output"},
     "text of Java's old hprof agent; record with Java Flight Recorder instead "
     "(-XX:StartFlightRecording)"},
    {"JAVA PROFILE ", 13, {NULL}, "a Java heap dump (hprof); use a heap analyser such as MAT"},
    {"Nettrace",
     8,
     {NULL},
     "a .NET trace; convert it with `dotnet-trace convert --format Speedscope`"},
    {"go 1.",
     5,
     {" trace"},
     "a Go execution trace; get a profile of it with `go tool trace -pprof=TYPE FILE`"},
    {"\x04\x08{",
     3,
     {NULL},
     "a stackprof dump of Ruby; convert it with `stackprof --json FILE > x.json`"},
    {"{",
     1,
     {"\"snapshot\"", "\"meta\"", "\"node_fields\""},
     "a V8 heap snapshot (.heapsnapshot), which has objects and no stacks; load it in Chrome's "
     "developer tools, or record a .heapprofile with `node --heap-prof`"},
    {"memray",
     6,
     {NULL},
     "a memray capture; convert it with `memray transform speedscope FILE -o x.json`"},
    {"MOJ", 3, {NULL}, "Austin's binary format; convert it with `mojo2austin FILE x.austin`"},
    {"bplist00",
     8,
     {NULL},
     "a binary property list, as in Instruments' .trace; export it with `xcrun xctrace export "
     "--input FILE.trace --toc`, or record with `sample PID -file x.txt`"},
    {"<?xml",
     5,
     {"<trace-toc"},
     "an export of Instruments; record with `sample PID -file x.txt`, which is supported"},
    {"<?xml",
     5,
     {"<trace-query-result"},
     "an export of Instruments; convert it with `inferno-collapse-xctrace FILE > x.folded`"},
    {"SQLite format 3",
     15,
     {"dd_"},
     "a database of VTune; export it with `vtune -report top-down -call-stack-mode all "
     "-column=\"CPU Time:Self\",Module -filter \"Function Stack\" -format csv -csv-delimiter comma "
     "-report-output x.csv -r DIRECTORY`, and convert that with `inferno-collapse-vtune x.csv > "
     "x.folded`"},
    {"Running Time\t",
     13,
     {"Symbol Name"},
     "text copied from Instruments; load it at https://www.speedscope.app and export it there, or "
     "record with `sample PID -file x.txt`"},
    {"Weight\tSelf Weight",
     18,
     {"Symbol Name"},
     "text copied from Instruments; load it at https://www.speedscope.app and export it there, or "
     "record with `sample PID -file x.txt`"},
    {"Bytes Used\tCount",
     16,
     {"Symbol Name"},
     "text copied from Instruments; load it at https://www.speedscope.app and export it there"},
    {"{",
     1,
     {"\"dhatFileVersion\""},
     "a profile of DHAT, which dh_view.html of Valgrind shows; record with `valgrind "
     "--tool=massif` or heaptrack instead"},
    {"{",
     1,
     {"\"cost_centres\""},
     "a JSON profile of GHC; record with `+RTS -p`, and convert that with "
     "`inferno-collapse-ghcprof FILE > x.folded`"},
    {"{\"type\": \"", 10, {"\"attached_probes\""}, "JSON of bpftrace; record without `-f json`"},
    {"*version\n",
     9,
     {"\nclock="},
     "a method trace of Android; record with simpleperf, and convert its perf.data with "
     "`stackcollapse.py -i perf.data > x.folded`, which comes with it"},
    {"SLOW",
     4,
     {"\x01Q"},
     "a method trace of Android; record with simpleperf, and convert its perf.data with "
     "`stackcollapse.py -i perf.data > x.folded`, which comes with it"},
    {"QPERFSTREAM", 11, {NULL}, "data of Hotspot's perfparser; read the perf.data instead"},
    {NULL,
     0,
     {"Level,Function Name,Number of Calls,Elapsed Inclusive Time"},
     "a report of Visual Studio's profiler; convert it with `inferno-collapse-vsprof FILE > "
     "x.folded`"},
    {NULL,
     0,
     {"Function Stack,CPU Time:Self"},
     "an export of VTune; convert it with `inferno-collapse-vtune FILE > x.folded`"},
    {NULL,
     0,
     {"Time and Allocation Profiling Report"},
     "a profile of GHC; convert it with `inferno-collapse-ghcprof FILE > x.folded`"},
    {"v8-version,",
     11,
     {NULL},
     "a log of V8's old profiler (node --prof); record with `node --cpu-prof` instead"},
    {"v ", 2, {"\nx "}, "raw data of heaptrack; convert it with `heaptrack --interpret FILE`"},
    {"gmon",
     4,
     {NULL},
     "data of gprof, which has no stacks; record the program with `assay record` instead"},
    {"Flat profile:",
     13,
     {"cumulative"},
     "a report of gprof, which has no stacks; record the program with `assay record` instead"},
    {"{",
     1,
     {"\"recording\"", "\"instrumentTypes\""},
     "a timeline of Safari; load it at https://www.speedscope.app and export it there"},
    {NULL, 0, {"ustar", "00"}, "a tar archive; unpack it and read the profiles in it"},
    {"MZ", 2, {"DOS mode"}, "a Windows binary, not a profile"},
    {"\xcf\xfa\xed\xfe", 4, {NULL}, "a macOS binary, not a profile"},
};

/* Profiles that are directories, by what is in them. */
static const struct {
    const char *ending; /* of the name of an entry */
    const char *what;
} foreign_directories[] = {
    {".run",
     "a trace of Instruments; export it with `xcrun xctrace export --input DIRECTORY --xpath "
     "'/trace-toc/run/data/table[@schema=\"time-profile\"]' > x.xml`, and convert that with "
     "`inferno-collapse-xctrace x.xml > x.folded`"},
    {".vtune",
     "a result of VTune; export it with `vtune -report top-down -call-stack-mode all "
     "-column=\"CPU Time:Self\",Module -filter \"Function Stack\" -format csv -csv-delimiter comma "
     "-report-output x.csv -r DIRECTORY`, and convert that with `inferno-collapse-vtune x.csv > "
     "x.folded`"},
    {"data.0",
     "a recording of `perf record --threads`; read the output of `perf script -i DIRECTORY`"},
};

const char *format_foreign_directory(const char *path)
{
    struct stat about;
    if (stat(path, &about) < 0 || !S_ISDIR(about.st_mode))
        return NULL;
    DIR *directory = opendir(path);
    const char *what = NULL;
    for (struct dirent *entry; directory && !what && (entry = readdir(directory));)
        for (size_t i = 0; i < ARRAY_LENGTH(foreign_directories); i++) {
            const char *ending = foreign_directories[i].ending;
            size_t length = strlen(entry->d_name);
            if (length >= strlen(ending) &&
                !strcmp(entry->d_name + length - strlen(ending), ending))
                what = foreign_directories[i].what;
        }
    if (directory)
        closedir(directory);
    return what ? what : "a directory; name the files in it";
}

static bool begins(const struct foreign *kind, const char *bytes, size_t length)
{
    /* JSON may be indented. */
    if (kind->magic && kind->magic_length == 1)
        while (length && strchr(" \t\r\n", *bytes))
            bytes++, length--;
    return !kind->magic ||
           (length >= kind->magic_length && !memcmp(bytes, kind->magic, kind->magic_length));
}

const char *format_foreign(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(foreign); i++) {
        const struct foreign *kind = &foreign[i];
        bool matches = begins(kind, (const char *)bytes, length);
        for (size_t w = 0; matches && kind->words[w]; w++)
            matches = memmem(bytes, length, kind->words[w], strlen(kind->words[w])) != NULL;
        if (matches)
            return kind->what;
    }
    return NULL;
}
