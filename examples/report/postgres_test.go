package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/pgserver"
	"github.com/daimon-go/daimon/internal/tier"
)

// newServerDesk is a desk whose database is on a PostgreSQL server of its own.
func newServerDesk(t *testing.T) *desk {
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	d := newDesk(t)
	s, err := pgserver.Start(pgserver.Config{Settings: map[string]string{"fsync": "off"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d.db, err = s.Create("reports")
	require.NoError(t, err)
	return d
}

// Several programs work on one database of PostgreSQL, and are killed by turns. Each report is there once, and right.
func TestPostgres(t *testing.T) {
	d := newServerDesk(t)
	var paths []string
	for i := range 30 {
		paths = append(paths, d.write(fmt.Sprintf("file %d", i), text(20+i%20)))
	}
	flags := []string{"-pace", "5ms", "-workers", "3", "-lease", "1s", "-attempts", "1000"}
	programs := []*exectest.Program{d.start("build", append(flags, paths...)...)}
	d.opened(programs[0])
	for range 2 {
		programs = append(programs, d.start("build", flags...))
	}
	for i := range 6 {
		time.Sleep(300 * time.Millisecond)
		if p := programs[i%3]; !p.Gone() {
			p.Signal(t, syscall.SIGKILL)
			exectest.Eventually(t, exectest.Patience, "the end", p.Gone)
			programs[i%3] = d.start("build", flags...)
		}
		d.consistent()
	}
	for _, p := range programs {
		require.Zero(t, p.ExitWithin(t, all), p.Said())
	}
	d.reports(paths...)
	require.Equal(t, expected(t, paths[0]), d.run("show", "1"))
	require.Equal(t, "1 is left as it is: FINISHED\n", d.run("cancel", "1"))
}
