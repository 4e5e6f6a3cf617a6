
+process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="x"}€öÒã4  ƒÙã4(d0:

mainZ00000000000000a1