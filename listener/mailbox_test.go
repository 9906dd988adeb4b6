package listener_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestAMailboxIsBoundedAndInOrder(t *testing.T) {
	m := listener.NewMailbox[int](3)
	for i := range 4 { // the next power of two
		require.NoError(t, m.Send(i))
	}
	require.EqualError(t, m.Send(4), "listener: the mailbox is full")
	for i := range 4 {
		v, err := m.Take()
		require.NoError(t, err)
		require.Equal(t, i, v)
	}
	_, err := m.Take()
	require.EqualError(t, err, "listener: the mailbox is empty")
	require.NoError(t, m.Send(5))
}

func TestASendDoesNotAllocate(t *testing.T) {
	l := servertest.New(t, act.Config{})
	m := listener.NewMailbox[int](8)
	got := 0
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		_, err := m.Take()
		if err == listener.ErrMailboxClosed {
			return act.Done
		}
		if err == nil {
			got++
		}
		return listener.Next(t, err)
	}))
	step := func() {
		m.Send(1)
		_, _ = l.S.Step(2)
	}
	step()
	require.Zero(t, testing.AllocsPerRun(200, step))
	require.GreaterOrEqual(t, got, 200)
	m.Close()
	require.NoError(t, l.S.Run())
}

// What comes between a look that found nothing and the wait is not lost: the last to look is Arm.
func TestWhatComesBetweenTakeAndArmWakes(t *testing.T) {
	for name, come := range map[string]func(m *listener.Mailbox[int]){
		"a value": func(m *listener.Mailbox[int]) { require.NoError(t, m.Send(1)) },
		"a close": func(m *listener.Mailbox[int]) { m.Close() },
	} {
		s := act.New(act.Config{})
		m, turns := listener.NewMailbox[int](1), 0
		s.Spawn(act.Func(func(task *act.Task) act.Directive {
			_, err := m.Take()
			if turns++; turns > 1 {
				return act.Done
			}
			come(m)
			err.(interface{ Arm(*act.Task) }).Arm(task)
			return act.Wait
		}))
		taken, err := s.Step(2)
		require.NoError(t, err)
		require.Equal(t, 2, taken, name)
		require.NoError(t, s.Close())
	}
}

func TestCloseWakesATaskThatWaitsForRoom(t *testing.T) {
	s := act.New(act.Config{})
	m := listener.NewMailbox[int](1)
	require.NoError(t, m.Send(1))
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if err := m.Send(2); err != listener.ErrMailboxClosed {
			return listener.Next(t, err)
		}
		return act.Done
	}))
	s.Spawn(act.Func(func(*act.Task) act.Directive { m.Close(); return act.Done }))
	taken, err := s.Step(10)
	require.NoError(t, err)
	require.Equal(t, 3, taken)
	require.NoError(t, s.Close())
}

// Two tasks on other schedulers send more than there is room for; what takes is slower than both.
func TestATaskWaitsForRoomInAMailbox(t *testing.T) {
	const n = 5000
	m := listener.NewMailbox[int](4)
	var turns [3]int
	taken := 0
	require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: 3}, func(s *act.Scheduler) error {
		left := n
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			turns[s.Index()]++
			if s.Index() == 0 {
				_, err := m.Take()
				if err == nil {
					taken++
				}
				if taken == 2*n {
					return act.Done
				}
				return listener.Next(t, err)
			}
			for ; left > 0; left-- {
				if err := m.Send(left); err != nil {
					return listener.Next(t, err)
				}
			}
			return act.Done
		}))
		return nil
	}))
	require.Equal(t, 2*n, taken)
	require.Less(t, turns[1]+turns[2], 4*n, "they wait")
}
