# SPDX-License-Identifier: Apache-2.0
# Ruby frames of every kind, for so many seconds of CPU time: deep recursion, a method in C that calls
# back, threads, a child, code that is made and thrown away, garbage collection, exceptions, a fiber,
# define_method, method_missing. See shares_of.rb for the first half second.
def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

def spin(seconds = 0.002)
  finish = cpu + seconds
  while cpu < finish
    i = 0
    i += 1 while i < 300
  end
end

def recurse(depth)
  depth == 0 ? spin(0.02) : recurse(depth - 1)
end

def called_back(left, right)
  spin(0.001)
  left - right
end

def through_sort
  [5, 3, 4, 1, 2].sort { |left, right| called_back(left, right) }
end

def raising
  spin
  raise ArgumentError
rescue ArgumentError
  spin
ensure
  spin
end

def in_fiber
  fiber = Fiber.new do
    spin
    Fiber.yield
    spin
  end
  2.times { fiber.resume }
end

class Dynamic
  define_method(:defined_here) { spin }

  def method_missing(name, *)
    name == :absent ? spin : super
  end

  def respond_to_missing?(name, *) = name == :absent
end

def thrown_away(number)
  eval("def made_#{number}; spin; GC.start if #{number} % 50 == 0; end", binding, "/made/made_#{number}.rb")
  send("made_#{number}")
  Object.send(:remove_method, "made_#{number}")
end

def in_thread(over)
  until over[0]
    raising
    sleep 0.001
  end
end

def in_child(seconds)
  finish = cpu + seconds / 5
  spin while cpu < finish
end

def main(seconds)
  spin(0.5)
  File.write("/proc/self/comm", "measured")
  child = fork do
    in_child(seconds)
    exit!
  end
  over = [false]
  thread = Thread.new do
    File.write("/proc/thread-self/comm", "measured")
    in_thread(over)
  end
  number = 0
  finish = cpu + seconds
  while cpu < finish
    recurse(700)
    through_sort
    raising
    in_fiber
    Dynamic.new.defined_here
    Dynamic.new.absent
    10.times { thrown_away(number += 1) }
  end
  over[0] = true
  thread.join
  Process.wait(child)
end

main(ARGV[0].to_f)
