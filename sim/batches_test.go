package sim_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldCrowds has many clients that ask at the same moments, so that calls are made in batches without being told to.
func TestWorldCrowds(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) { newCrowd(t, w, pick(w, 20, 40, 200)) })
}

func newCrowd(t *testing.T, w *sim.World, n int) {
	unix := &service.Listener{Address: "unix:/run/crowd", Handler: echo.Echo, Limits: patient(w)}
	_, err := w.Server("crowd", act.Config{TurnsPerPass: pick(w, 0, 8)}, unix.Setup)
	require.NoError(t, err)
	for i := range n {
		w.Client(unix.Address, func(c *sim.Client) error {
			for round := range 4 {
				const often = 10 * time.Millisecond
				c.Sleep(often - w.Now()%often)
				question := fmt.Sprint("question ", round, " of ", i)
				if _, err := io.WriteString(c, question); err != nil {
					return err
				}
				answer := make([]byte, len(question))
				if _, err := io.ReadFull(c, answer); err != nil {
					return err
				}
				if string(answer) != question {
					return fmt.Errorf("%q in place of %q", answer, question)
				}
			}
			return nil
		})
	}
}
