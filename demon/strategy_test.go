package demon_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

func TestPostsAndAnOrderReachASleepingScheduler(t *testing.T) {
	strategies := servertest.Strategies()
	strategies["a pause of an hour"] = demon.Pause(time.Hour)
	for name, idle := range strategies {
		t.Run(name, func(t *testing.T) { reached(t, idle) })
	}
}

func reached(t *testing.T, idle act.Strategy) {
	const posters, each = 8, 300
	s := act.New(act.Config{Idle: idle})
	defer s.Close()
	s.Install(demon.Stay())
	ended := runElsewhere(t, s)
	ran := make(map[int]int) // only on the scheduler's thread
	var all sync.WaitGroup
	for p := range posters {
		all.Go(func() {
			heard := make(chan bool)
			for n := range each {
				answer := n%10 == 0 // then it waits, and the scheduler goes to sleep
				s.Post(func(*act.Scheduler) {
					ran[p*each+n]++
					if answer {
						heard <- true
					}
				})
				if answer {
					<-heard
				}
			}
		})
	}
	all.Wait()
	s.Shutdown(shutdown.Policy{})
	require.NoError(t, servertest.Receive(t, ended))
	require.Len(t, ran, posters*each)
	for _, times := range ran {
		require.Equal(t, 1, times)
	}
}
