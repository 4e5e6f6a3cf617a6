# SPDX-License-Identifier: Apache-2.0
# Spends CPU time in three methods, about 60, 30 and 10 of 100, for so many seconds, and prints how
# much each really took. One of them is a generator in a fiber, one a method of a class. Before that
# the recorder has half a second to find the interpreter; from then on the process is "measured".
def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

def spin(seconds)
  finish = cpu + seconds
  count = 0
  while cpu < finish
    i = 0
    while i < 2000
      count = (count * 31 + i) % 1000003
      i += 1
    end
  end
  count
end

def sixty
  spin(0.06)
end

def thirty
  Enumerator.new { |parts| 3.times { parts << spin(0.01) } }.next
  2.times { spin(0.01) }
end

class Worker
  def ten
    spin(0.01)
  end
end

def measured
  start = cpu
  yield
  cpu - start
end

def main(seconds)
  spin(0.5)
  File.write("/proc/self/comm", "measured")
  worker = Worker.new
  took = { sixty: 0, thirty: 0, ten: 0 }
  while took.values.sum < seconds
    took[:sixty] += measured { sixty }
    took[:thirty] += measured { thirty }
    took[:ten] += measured { worker.ten }
  end
  took.each { |name, used| puts "#{name} #{100 * used / took.values.sum}" }
end

main(ARGV[0].to_f)
