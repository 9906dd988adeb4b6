// Command remind makes a task for each line of its input: "20m the eggs" is printed after twenty minutes.
//
//	printf '2s two\n1s one\n' | go run ./examples/remind
//
// It ends when its input has ended and everything is printed. The status is 1 if the input could not be read to its end,
// or a line was not understood.
package main

import (
	"os"

	"github.com/daimon-go/daimon/examples/internal/tool"
	"github.com/daimon-go/daimon/examples/remind/remind"
	"github.com/daimon-go/daimon/internal/cli"
)

func main() {
	cli.Parse("remind", cli.NoArguments)
	text := remind.Text{In: os.Stdin, Out: os.Stdout}
	tool.Run("remind", text.Setup)
}
