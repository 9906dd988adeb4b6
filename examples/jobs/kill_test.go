package main

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/store"
)

// Two programs work on one database, and are killed by turns while tasks are at work. After each kill, and in the end, every task
// has the steps of the stages that it has reached: each stage has been committed once.
func TestKill(t *testing.T) {
	tier.Need(t, tier.Full, "waits for the ends of leases")
	t.Run("SQLite", func(t *testing.T) { killed(t, newFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		_, db := newServer(t)
		killed(t, db)
	})
}

func killed(t *testing.T, db string) {
	t.Parallel()
	const tasks = 60
	programs := [2]*site{start(t, db, "-pace", "20ms", "-load", fmt.Sprint(tasks)), start(t, db, "-pace", "20ms")}
	for i := range 4 {
		victim, other := programs[i%2], programs[1-i%2]
		exectest.Eventually(t, exectest.Patience, "a task at work", func() bool {
			n := other.view("").counts()
			return n["at work"] > 0 || n["finished"]+n["failed"] == tasks
		})
		victim.Signal(t, syscall.SIGKILL)
		exectest.Eventually(t, exectest.Patience, "the end", victim.Gone)
		other.consistent(tasks)
		programs[i%2] = start(t, db, "-pace", "20ms")
	}
	s := programs[0]
	exectest.Eventually(t, exectest.Patience, "all tasks finished", func() bool {
		for _, x := range s.view("state=failed").Tasks {
			s.ask("POST", fmt.Sprintf("/api/tasks/%d/retry", x.ID), map[string]string{"X-Jobs-Token": s.token})
		}
		return s.view("").counts()["finished"] == tasks
	})
	s.consistent(tasks)
	for _, s := range programs {
		s.Stop(t)
	}
}

// consistent requires that each task has the steps of its stages, each counted once.
func (s *site) consistent(tasks int) {
	s.t.Helper()
	for id := range tasks {
		code, text := s.ask("GET", fmt.Sprintf("/api/tasks/%d", id+1), nil)
		require.Equal(s.t, 200, code, text)
		var x struct{ Kind, Stage, Data string }
		require.NoError(s.t, json.Unmarshal([]byte(text), &x))
		var o order
		require.NoError(s.t, json.Unmarshal([]byte(x.Data), &o))
		want := 0
		for i, at := range kinds[x.Kind].Chain.Stages() {
			if at == x.Stage {
				break
			}
			if i%2 == 1 { // a dynamic one
				want += stepsOf(&store.Task{ID: store.ID(id + 1), Stage: at})
			}
		}
		require.Equal(s.t, want, o.Steps, text)
	}
}
