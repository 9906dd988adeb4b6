package main

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
)

const (
	conns    = 4                // of the honest clients
	patience = 30 * time.Second // for an answer
)

// honest sends rate requests in a second, on each connection in turn, and prints the median and the 99th percentile, in µs, of
// how long after the time when a request was to be sent its answer was complete. So the delay of one counts for all behind it.
func honest(addr string, rate int, last time.Duration) (err error) {
	n := max(1, int(last.Seconds()*float64(rate))/conns) * conns
	took := make([]time.Duration, n)
	when := func(i int) time.Duration { return time.Duration(i) * time.Second / time.Duration(rate) }
	var all [conns]net.Conn
	for i := range all {
		if all[i], err = net.Dial("tcp", addr); err != nil {
			return err
		}
		defer all[i].Close()
		begin(all[i])
	}
	start := time.Now().Add(10 * time.Millisecond)
	ended := make(chan error, conns)
	for i, c := range all {
		_ = c.SetReadDeadline(start.Add(last + patience)) // fails on closed connections only
		go func() {
			for left, f := n/conns, http2.NewFramer(nil, c); left > 0; {
				frame, err := f.ReadFrame()
				if err != nil {
					ended <- fmt.Errorf("an honest client: %w", err)
					return
				}
				switch h := frame.Header(); {
				case h.Type == http2.FrameGoAway, h.Type == http2.FrameRSTStream:
					ended <- fmt.Errorf("an honest client is told %v", frame)
					return
				case h.Type == http2.FrameData && h.Flags.Has(http2.FlagDataEndStream):
					k := int(h.StreamID/2)*conns + i
					took[k] = time.Since(start) - when(k)
					left--
				}
			}
			ended <- nil
		}()
	}
	runtime.LockOSThread() // the kernel's timers are more exact than the runtime's, which are those of epoll
	var out bytes.Buffer
	f := http2.NewFramer(&out, nil)
	for k := range n {
		pause := unix.NsecToTimespec(int64(max(0, when(k)-time.Since(start))))
		_ = unix.Nanosleep(&pause, nil) // a signal makes a request early
		request("/small")(f, uint32(2*(k/conns)+1))
		if _, err := out.WriteTo(all[k%conns]); err != nil {
			return fmt.Errorf("an honest client: %w", err)
		}
	}
	for range all {
		if err := <-ended; err != nil {
			return err
		}
	}
	slices.Sort(took)
	fmt.Println(took[n/2].Microseconds(), took[n*99/100].Microseconds())
	return nil
}
