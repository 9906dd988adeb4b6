package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/bench/queue/measure"
)

// run runs the worker for a row with a queue, on a database of its own: a process for each run, so that none is affected by
// the garbage, connections and statistics of another.
func (m *measurement) run(ctx context.Context, r row, queue string) (f measure.Figures, err error) {
	m.runs++
	database := fmt.Sprintf("run_%d", m.runs)
	url, err := m.server.Create(database)
	if err != nil {
		return f, err
	}
	defer func() {
		_, drop := m.server.Do("postgres", "DROP DATABASE "+database+" WITH (FORCE)")
		err = errors.Join(err, drop)
	}()
	cmd := exec.CommandContext(ctx, m.worker, m.flags(r, queue, url)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	f, err = m.converse(cmd)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return f, fmt.Errorf("%s: %w\n%s", cmd, err, &complaint)
	}
	fmt.Fprint(m.out, complaint.String()) // warnings of a queue
	return f, nil
}

func (m *measurement) flags(r row, queue, url string) []string {
	tasks, workers, rate := max(1, int(m.Scale*float64(r.tasks))), m.Workers, m.Rate
	switch r.name {
	case "snapshot":
		rate = m.Feed
	case "heartbeats":
		workers = tasks
	}
	all := []string{"-row", r.name, "-queue", queue, "-db", url,
		"-tasks", strconv.Itoa(tasks), "-workers", strconv.Itoa(workers),
		"-conns", strconv.Itoa(m.Conns), "-rate", strconv.Itoa(rate), "-last", m.Last.String(), "-every", m.Every.String()}
	if m.Profile != "" {
		all = append(all, "-profile", filepath.Join(m.Profile, r.name+"-"+queue+".pprof"))
	}
	if queue == "control" {
		all[3] = "river"
	}
	return all
}

// converse runs the worker, tells it the CPU time of PostgreSQL when it asks, and returns what it has found.
func (m *measurement) converse(cmd *exec.Cmd) (f measure.Figures, err error) {
	answers, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	questions, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	defer func() { err = cmp.Or(cmd.Wait(), err) }()
	defer io.Copy(io.Discard, questions) // after an error
	for said := bufio.NewScanner(questions); said.Scan(); {
		if said.Text() != measure.Ask {
			return f, json.Unmarshal(said.Bytes(), &f)
		}
		if _, err := fmt.Fprintln(answers, m.server.CPU().Nanoseconds()); err != nil {
			return f, err
		}
	}
	return f, io.ErrUnexpectedEOF
}
