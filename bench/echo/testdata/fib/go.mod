module fib

go 1.27.3

require github.com/lesismal/fib v1.7.0
