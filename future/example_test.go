package future_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
)

// A task waits for a value from another goroutine.
func Example() {
	s := act.New(act.Config{})
	defer s.Close()

	answer := future.New[int](s)
	go func() { _ = answer.Resolve(42) }()

	wait := answer.Await()
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if d := wait.Act(t); d != act.Done {
			return d
		}
		fmt.Println(answer.Value())
		return act.Done
	}))
	fmt.Println(s.Run())
	// Output:
	// 42 <nil>
	// <nil>
}

// An error passes through Map to a function that can handle it.
func ExampleMap() {
	s := act.New(act.Config{})
	defer s.Close()
	for _, text := range []string{"20", "twenty"} {
		f := future.New[string](s)
		number := future.Map(f, strconv.Atoi)
		double := future.Map(number, func(n int) (int, error) { return 2 * n, nil })
		double.Handle(func(n int, err error) { fmt.Println(n, err) })
		_ = f.Resolve(text)
	}
	fmt.Println(s.Run())
	// Output:
	// 40 <nil>
	// 0 strconv.Atoi: parsing "twenty": invalid syntax
	// <nil>
}

func ExampleAll() {
	s := act.New(act.Config{})
	defer s.Close()
	var parts []*future.Future[int]
	for n := range 4 {
		parts = append(parts, future.Go(s, func() (int, error) { return n * n, nil }))
	}
	all := future.All(s, parts...)
	fmt.Println(s.Run())
	fmt.Println(all.Value())
	// Output:
	// <nil>
	// [0 1 4 9] <nil>
}

// Do makes a future of an action, and Within bounds the wait for it.
func ExampleDo() {
	s := act.New(act.Config{})
	defer s.Close()

	rolls := 0
	six := act.Func(func(*act.Task) act.Directive {
		if rolls++; rolls%6 != 0 {
			return act.Yield
		}
		return act.Done
	})
	future.Do(s, six, func() int { return rolls }).Within(time.Minute).Handle(func(n int, err error) {
		fmt.Println(n, err)
	})
	fmt.Println(s.Run())
	// Output:
	// 6 <nil>
	// <nil>
}
