// Command pace has several tasks that print lines. A monitor lets them print one after the other, a fixed number of times
// a second.
//
//	go run ./examples/pace -tasks 3 -each 4 -rate 5
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/daimon-go/daimon/examples/internal/tool"
	"github.com/daimon-go/daimon/examples/pace/pace"
	"github.com/daimon-go/daimon/internal/cli"
)

func main() {
	tasks := flag.Int("tasks", 3, "the `number` of tasks")
	each := flag.Int("each", 4, "the `number` of lines that each task prints")
	rate := flag.Float64("rate", 5, "the `number` of lines a second, of all tasks together")
	cli.Parse("pace", func() error {
		switch {
		case *tasks < 0:
			return fmt.Errorf("-tasks must not be negative: %d", *tasks)
		case *each < 0:
			return fmt.Errorf("-each must not be negative: %d", *each)
		case !(*rate >= pace.Slowest && *rate <= pace.Fastest): // nor NaN
			return fmt.Errorf("-rate must be from %v to %v times a second: %v", pace.Slowest, pace.Fastest, *rate)
		}
		return cli.NoArguments()
	})
	tool.Run("pace", pace.Setup(*rate), pace.Talk(os.Stdout, *tasks, *each))
}
