
O
+process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="x"}€öÒã4  ƒÙã4O
+process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="x"}€öÒã4  ƒÙã4