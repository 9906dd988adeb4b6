package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/process/measure"
)

// programs are the paths of what is run, by name.
type programs map[string]string

func compile(to string) (programs, error) {
	b, err := build.Into(to)
	if err != nil {
		return nil, err
	}
	all := programs{}
	for _, name := range []string{"daimon", "goroutines", "actors"} {
		if all[name], err = b.Go("process/" + name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// run runs the program of c, if it has one, for its row. Each run is a separate process, so that none is
// affected by the garbage, stacks and threads of another.
func (o Options) run(ctx context.Context, p programs, c column, row string) (f measure.Figures, err error) {
	if c.program == "" {
		return f, nil
	}
	row = cmp.Or(c.row, row)
	cmd := exec.CommandContext(ctx, p[c.program], "-row", row, "-laps", strconv.Itoa(c.laps),
		"-reactors", strconv.Itoa(c.reactors), "-scale", strconv.FormatFloat(o.Scale, 'g', -1, 64))
	if o.Profile != "" && c.name == "daimon" {
		cmd.Args = append(cmd.Args, "-profile", filepath.Join(o.Profile, row+".pprof"))
	}
	if c.procs > 0 {
		cmd.Env = append(cmd.Environ(), "GOMAXPROCS="+strconv.Itoa(c.procs))
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return f, fmt.Errorf("%s: %w\n%s", cmd, err, &complaint)
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("%s: %w", cmd, err)
	}
	return f, nil
}
