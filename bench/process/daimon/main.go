// Command daimon runs the benchmarks with processes of package process.
package main

import (
	"context"
	"log"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/bench/process/measure"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/process"
)

func main() {
	measure.Main(map[string]func(*measure.Meter){
		"hand-off": handOff,
		"flood":    flood,
		"bounce":   bounce,
		"spawn":    spawn,
		"fresh":    fresh,
		"sleep":    sleep,
		"work":     work,
		"fan-in":   fanIn,
		"exchange": exchange,
		"light":    light,

		"calls":      callsBesideTasks,
		"calls-idle": calls,
	})
}

// run runs a System on schedulers that poll sockets as well, as the schedulers of a server do, until stop is called.
func run(reactors int, begin func(sys *process.System, stop func())) {
	runOn(reactors, func(_ *act.Scheduler, sys *process.System, stop func()) { begin(sys, stop) })
}

// runOn is run with the last of the schedulers.
func runOn(reactors int, begin func(s *act.Scheduler, sys *process.System, stop func())) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sys := process.New()
	err := act.Run(ctx, act.Config{Schedulers: reactors}, sys.Setup, func(s *act.Scheduler) error {
		if s.Index() == reactors-1 { // all others are ready
			begin(s, sys, stop)
		}
		_, err := monitor.EngineOf(s)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// send sends to a process that is alive.
func send[M any](to process.Ref[M], from process.Sender, m M) {
	if err := to.Send(from, m); err != nil {
		log.Fatal(err)
	}
}

// spawned spawns a process with a Handler.
func spawned[M any](from process.Sender, h func(*process.Self[M], M)) process.Ref[M] {
	return process.Spawn(from, process.Handler[M](h), process.Options{})
}
