package wheel_test

import (
	"fmt"

	"github.com/daimon-go/daimon/internal/wheel"
)

// A connection has its deadline as a field; the wheel gives it back when due.
func Example() {
	type conn struct {
		name string
		idle wheel.Node[*conn]
	}
	a, b := &conn{name: "a"}, &conn{name: "b"}
	a.idle.Of, b.idle.Of = a, b

	var w wheel.Wheel[*conn]
	w.Arm(&a.idle, 3000)
	w.Arm(&b.idle, 2000)
	w.Arm(&a.idle, 9000) // a was heard of: later

	next, _ := w.Next()
	fmt.Println("sleep until", next)
	for n := w.Pop(5000); n != nil; n = w.Pop(5000) {
		fmt.Println(n.Of.name, "was silent since", n.When())
	}
	fmt.Println("left:", a.name, a.idle.Armed())
	// Output:
	// sleep until 2000
	// b was silent since 2000
	// left: a true
}
