package press

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// kind of the tasks, and its chain.
const kind = "job"

var chain = stage.Begin("SET").Then("PRINTING", "print", "PRINTED").MustBuild()

// page is how many bytes fit on one.
const page = 2000

// job is what the press has to know.
type job struct {
	Customer string
	Pages    int
}

// set makes pages of a text, and puts them down for the press. It is called off the schedulers' threads.
func (x *Shop) set(customer, text string) (stage.ID, error) {
	time.Sleep(x.Pace) // hard work
	data, err := json.Marshal(job{customer, 1 + len(text)/page})
	if err != nil {
		return 0, err
	}
	return x.engine.Enqueue(context.Background(), kind, data)
}

// print is the processor of PRINTING. One that is interrupted begins anew, with the first page, when the job is claimed
// again.
func (x *Shop) print(ctx context.Context, t *stage.Task) (stage.Commit, error) {
	var j job
	if err := json.Unmarshal(t.Data, &j); err != nil {
		return nil, stage.Permanent(err)
	}
	for range j.Pages {
		select {
		case <-time.After(x.Pace):
		case <-ctx.Done():
			return nil, stage.CheckSuspended(ctx)
		}
	}
	// The customer may hear of it twice, if this stage has to be done again, and knows what it has heard.
	return nil, x.customer(j.Customer, false).Deliver(ctx, isPrinted{t.ID})
}

// condition is a line about a task.
func condition(t *stage.Task) string {
	var j job
	_ = json.Unmarshal(t.Data, &j) // else nobody's
	return fmt.Sprintf("job %d of %s: %s, %s", t.ID, j.Customer, t.Stage, t.Status)
}
