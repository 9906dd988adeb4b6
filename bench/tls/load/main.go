// Command load is the load generator for servers that speak TLS:
//
//	load [-certificate FILE] [-handshakes KIND] [-every TIME] [-answer N] [-nice N] PORT CONNS CPU
//
// It has the protocol of internal/load/c/load.c on standard input and output: clients in a closed loop, each in a
// goroutine, that know what they will hear and compare every byte. With -handshakes an exchange is a connection: a
// handshake, full or resumed, and close_notify in both directions. With -every each connection has an exchange in that
// time, and the answer to a number of exchanges goes on with the median, the 99th percentile and the maximum of their
// latencies, in ns. With -answer the answers are of HTTP: their status and the length of their content are compared, and no
// byte.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/load"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("load: ")
	var c crowd
	certificate := flag.String("certificate", "", "the `file` of the certificate that the server must have; without one there is no TLS")
	flag.StringVar(&c.handshakes, "handshakes", "", "full or resumed: an exchange is a handshake of this `kind`")
	flag.DurationVar(&c.every, "every", 0, "the time between two exchanges of a connection")
	flag.IntVar(&c.answer, "answer", -1, "answers are of HTTP, with so many `bytes` of content")
	nice := flag.Int("nice", 0, "the nice value")
	flag.Parse()
	var port, conns, cpu int
	for i, n := range []*int{&port, &conns, &cpu} {
		var err error
		if *n, err = strconv.Atoi(flag.Arg(i)); err != nil {
			log.Fatal("usage: load [flags] PORT CONNS CPU")
		}
	}
	if c.every == 0 { // latencies are measured by a client that is as awake as can be
		check(becomeModest(cpu, *nice))
	}
	in := bufio.NewReader(os.Stdin)
	var err error
	c.talk, err = load.Learn(in)
	check(err)
	check(c.prepare("127.0.0.1:"+strconv.Itoa(port), conns, *certificate))
	fmt.Println("ready")
	for {
		var exchanges int
		if _, err := fmt.Fscan(in, &exchanges); errors.Is(err, io.EOF) {
			return
		} else {
			check(err)
		}
		start := time.Now()
		check(c.run(exchanges))
		fmt.Println(time.Since(start).Nanoseconds(), c.latencies())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// becomeModest executes the program once more, on one CPU (-1: any) and under SCHED_BATCH, which all its threads then
// inherit. See load.c for the reason.
func becomeModest(cpu, nice int) error {
	const done = "DAIMON_LOAD"
	if os.Getenv(done) != "" {
		return nil
	}
	runtime.LockOSThread()
	if cpu >= 0 {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("sched_setaffinity: %w", err)
		}
	}
	batch := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: int32(nice)}
	if err := unix.SchedSetAttr(0, &batch, 0); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), done+"=1"))
}
