// SPDX-License-Identifier: Apache-2.0
// Names as they are shown: demangled, without what differs from process to process; and the way
// back.

#include <string.h>

#include "profile/names/allocator.h"
#include "profile/names/readable.h"
#include "profile/naming.h"
#include "unit.h"

static void assert_readable(const char *name, const char *expected)
{
    _cleanup_buffer_ struct buffer out = {0}, again = {0};
    if (!name_readable(name, strlen(name), &out))
        buffer_add_text(&out, name);
    assert_string_equal(buffer_text(&out), expected);
    assert_false(name_without_generated(out.data, out.length, &again));
}

static void of_the_jvm(void **state)
{
    static const char *const names[][2] = {
        {"a.Shop$$Lambda$669.0x0000000800fd7318.run", "a.Shop$$Lambda_.run"},
        {"Fib$$Lambda.0x00007ffa600c4da0.run", "Fib$$Lambda_.run"},
        {"a.Disk$$Lambda+0x000001c39a042338.1457410641.run", "a.Disk$$Lambda_.run"},
        {"a.Disk$$Lambda$92+0x00007f4d2c0b1a30.172032696.apply", "a.Disk$$Lambda_.apply"},
        {"a.Shop$$Lambda$14/0x12.run", "a.Shop$$Lambda_.run"},
        {"a/Shop$$Lambda$14/1225373914.run", "a/Shop$$Lambda_.run"},
        {"a.Shop$$Lambda/0x0000000800c03400", "a.Shop$$Lambda_"},
        {"La/Shop$$Lambda$12;::run", "La/Shop$$Lambda_;::run"},
        {"a.Shop$$Lambda14.run", "a.Shop$$Lambda_.run"},
        {"a.Shop$$Lambda.run", "a.Shop$$Lambda.run"},
        {"a.Shop$$Lambda", "a.Shop$$Lambda"},
        {"a.Shop$$Lambda.", "a.Shop$$Lambda."},
        {"a.Shop$$Lambda.0x", "a.Shop$$Lambda.0x"},
        {"a.Shop$$Lambda.added", "a.Shop$$Lambda.added"},
        {"java.lang.invoke.LambdaForm$MH/0x0000000800c03400.invoke",
         "java.lang.invoke.LambdaForm$MH_.invoke"},
        {"java.lang.invoke.LambdaForm$DMH.1225373914.invokeStatic",
         "java.lang.invoke.LambdaForm$DMH_.invokeStatic"},
        {"java.lang.invoke.LambdaForm$NamedFunction.invoke",
         "java.lang.invoke.LambdaForm$NamedFunction.invoke"},
        {"a.Hidden/0x0000000800c03400.go", "a.Hidden/_.go"},
        {"jdk.internal.reflect.GeneratedMethodAccessor31.invoke",
         "jdk.internal.reflect.GeneratedMethodAccessor_.invoke"},
        {"sun.reflect.GeneratedSerializationConstructorAccessor3.newInstance",
         "sun.reflect.GeneratedSerializationConstructorAccessor_.newInstance"},
        {"com.sun.proxy.$Proxy12.get", "com.sun.proxy.$Proxy_.get"},
        {"jdk.proxy2.$Proxy17.get", "jdk.proxy_.$Proxy_.get"},
        {"Ljdk/proxy2/$Proxy17;::get", "Ljdk/proxy_/$Proxy_;::get"},
        {"a.B$Proxy12.get", "a.B$Proxy12.get"},
        {"a.B$$EnhancerBySpringCGLIB$$1f2e.go", "a.B$$EnhancerBySpringCGLIB$$_.go"},
        {"a.B$$FastClassByGuice$$12ab34.go", "a.B$$FastClassByGuice$$_.go"},
        {"a.B$$SpringCGLIB$$0.go", "a.B$$SpringCGLIB$$_.go"},
        {"a.B$HibernateProxy$aBcD1234.go", "a.B$HibernateProxy$_.go"},
        {"a.B$ByteBuddy$Builder.go", "a.B$ByteBuddy$Builder.go"},
        {"a.B$MockitoMock$123456.go", "a.B$MockitoMock$_.go"},
        {"a.B_$$_jvst3ab_1f.go", "a.B_$$_jvst_.go"},
        {"a.B_$$_javassist_12.go", "a.B_$$_javassist_.go"},
        {"a.B$anonfun$run$1.apply", "a.B$anonfun$run$1.apply"},
        {"a.B$1.run", "a.B$1.run"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        assert_readable(names[i][0], names[i][1]);
}

static void of_go_and_others(void **state)
{
    static const char *const names[][2] = {
        {"slices.pdqsortOrdered[go.shape.string]", "slices.pdqsortOrdered[...]"},
        {"slices.SortFunc[go.shape.[]a.b,go.shape.*uint8].func1", "slices.SortFunc[...].func1"},
        {"a.(*M[go.shape.string,go.shape.[]uint8]).Get", "a.(*M[...]).Get"},
        {"a.F[go.shape.struct { X []int \"json:\\\"a]\\\"\" }]", "a.F[...]"},
        {"sync/atomic.(*Pointer[net.conn]).Load", "sync/atomic.(*Pointer[...]).Load"},
        {"sync/atomic.(*Pointer[...]).Load", "sync/atomic.(*Pointer[...]).Load"},
        {"a.F[go.shape.struct { X []in", "a.F[go.shape.struct { X []in"}, /* cut off */
        {"operator[]", "operator[]"},
        {"name[abi:cxx11]", "name[abi:cxx11]"},
        {"do_it [module]", "do_it [module]"},
        {"libc.so.6+0x29d90", "libc.so.6+0x29d90"},
        {"libjvm.so+0x12345678", "libjvm.so+0x12345678"},
        {"[jit 12]+0x7f0012345678", "[jit 12]+0x7f0012345678"},
        {"#<Class:0x00007f8b1c0a2b38>#go", "#<Class:_>#go"},
        {"DynamicClass::lambda_method12(class System.Runtime.CompilerServices.Closure,int)",
         "DynamicClass::lambda_method_(class System.Runtime.CompilerServices.Closure,int)"},
        {"lambda_method12", "lambda_method12"},
        {"do_work.llvm.1379876543210987654", "do_work.llvm._"},
        {"do_work.llvm.1379876543210987654.cold", "do_work.llvm._.cold"},
        {"_ZN3foo3barEv.llvm.1379876543210987654", "foo::bar"},
        {"foo::bar::h0123456789abcdef", "foo::bar"},
        {"<A as foo::B>::run::h0123456789abcdef.llvm.12", "<A as foo::B>::run.llvm._"},
        {"foo::h0123456789abcdef::bar", "foo::h0123456789abcdef::bar"},
        {"foo::h0123456789abcdeF", "foo::h0123456789abcdeF"},
        {"foo::h0123456789abcde", "foo::h0123456789abcde"},
        {"::h0123456789abcdef", "::h0123456789abcdef"},
        {"do_work.llvm.x", "do_work.llvm.x"},
        {"do_work.llvm.12x", "do_work.llvm.12x"},
        {"do_work.llvm.", "do_work.llvm."},
        {"<lambda>", "<lambda>"},
        {"_ZN3foo3barEv", "foo::bar"},
        {"__ZN3foo3barEv", "foo::bar"},
        {"_ZN4core3fmt5write17h01234567890abcdeE", "core::fmt::write"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_ZN", "_ZN"},
        {"_start", "_start"},
        {"__libc_start_main", "__libc_start_main"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        assert_readable(names[i][0], names[i][1]);
}

static uint32_t add(struct profile *profile, const char *name, const char *system_name)
{
    struct profile_function function = {.name = profile_cstring(profile, name),
                                        .system_name = profile_cstring(profile, system_name)};
    return profile_function(profile, &function);
}

static void assert_names(const struct profile *profile, uint32_t id, const char *name,
                         const char *system_name)
{
    assert_string_equal(profile_text(profile, profile->functions[id].name), name);
    assert_string_equal(profile_text(profile, profile->functions[id].system_name), system_name);
}

/* The original goes where the linker's name is; one that is there already stays. */
static void keeps_the_original(void **state)
{
    _cleanup_profile_ struct profile profile;
    (void)state;
    profile_init(&profile, PROFILE_ALL);
    assert_names(&profile, add(&profile, "main", ""), "main", "");
    assert_names(&profile, add(&profile, "main", "main"), "main", "main");
    assert_names(&profile, add(&profile, "A$$Lambda$1.run", ""), "A$$Lambda_.run",
                 "A$$Lambda$1.run");
    assert_names(&profile, add(&profile, "A$$Lambda$2.run", "A$$Lambda$2.run"), "A$$Lambda_.run",
                 "A$$Lambda$2.run");
    assert_names(&profile, add(&profile, "_ZN1a1bEv", "_ZN1a1bEv"), "a::b", "_ZN1a1bEv");
    assert_names(&profile, add(&profile, "a::b", "_ZN1a1bEv"), "a::b", "_ZN1a1bEv");
    assert_names(&profile, add(&profile, "", "_ZN1a1bEv"), "a::b", "_ZN1a1bEv");
    assert_names(&profile, add(&profile, "_Z1b", "_ZN1a1bEv"), "_Z1b", "_ZN1a1bEv");
}

static void gives_the_original_back(void **state)
{
    _cleanup_profile_ struct profile profile;
    (void)state;
    profile_init(&profile, PROFILE_ALL | PROFILE_ORIGINAL_NAMES);
    assert_names(&profile, add(&profile, "A$$Lambda$1.run", ""), "A$$Lambda$1.run", "");
    assert_names(&profile, add(&profile, "A$$Lambda_.run", "A$$Lambda$1.run"), "A$$Lambda$1.run",
                 "A$$Lambda$1.run");
    assert_names(&profile, add(&profile, "a::b", "_ZN1a1bEv"), "_ZN1a1bEv", "_ZN1a1bEv");
    /* What somebody else has made of it is no work of ours. */
    assert_names(&profile, add(&profile, "a::b()", "_ZN1a1bEv"), "a::b()", "_ZN1a1bEv");
}

/* Lambdas of two processes are one row, or two as they were. */
static void rows_add_up(void **state)
{
    (void)state;
    for (int original = 0; original < 2; original++) {
        _cleanup_profile_ struct profile profile;
        _cleanup_naming_ struct naming naming;
        profile_init(&profile, original ? PROFILE_ALL | PROFILE_ORIGINAL_NAMES : PROFILE_ALL);
        for (int i = 1; i <= 2; i++) {
            char name[32];
            snprintf(name, sizeof(name), "A$$Lambda$%d.run", i);
            profile_frame(&profile, &(struct profile_frame){.function = add(&profile, name, "")});
        }
        naming_init(&naming, &profile);
        assert_int_equal(naming.count, original ? 2 : 1);
    }
}

static void of_allocators(void **state)
{
    (void)state;
    static const char *const allocators[] = {"malloc",
                                             "operator new(unsigned long)",
                                             "std::string::_M_create",
                                             "alloc::alloc::alloc",
                                             "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
                                             "runtime.mallocgc",
                                             "_PyObject_GC_New"};
    static const char *const others[] = {"",
                                         "mallocate",
                                         "my_malloc",
                                         "allocate",
                                         "main.run",
                                         "<shop::Cart as core::clone::Clone>::clone",
                                         "stdlib::open",
                                         "corepack"};
    for (size_t i = 0; i < ARRAY_LENGTH(allocators); i++)
        assert_true(name_is_allocator(allocators[i], strlen(allocators[i])));
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        assert_false(name_is_allocator(others[i], strlen(others[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_jvm),         cmocka_unit_test(of_go_and_others),
        cmocka_unit_test(keeps_the_original), cmocka_unit_test(gives_the_original_back),
        cmocka_unit_test(rows_add_up),        cmocka_unit_test(of_allocators),
    };
    return cmocka_run_group_tests_name("readable", tests, NULL, NULL);
}
