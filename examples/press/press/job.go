package press

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// kind is that of the staged tasks, which go along the chain.
const kind = "job"

var chain = stage.Begin("SET").Then("PRINTING", "print", "PRINTED")

// page is how many bytes fit on a page.
const page = 2000

// job is the data of a task.
type job struct {
	Customer string
	Pages    int
}

// set typesets a text and stores the job for the press. It runs off the schedulers' threads.
func (x *Shop) set(customer, text string) (stage.ID, error) {
	time.Sleep(x.Pace) // stands for hard work
	data, err := json.Marshal(job{customer, 1 + len(text)/page})
	if err != nil {
		return 0, err
	}
	return x.engine.Enqueue(context.Background(), kind, data)
}

// print is the processor of PRINTING. If it is interrupted, it begins again with the first page when the job is claimed
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
	return nil, nil
}

// ended tells the customer that a job is printed. The store shows it by now, and the stage is not done again.
func (x *Shop) ended(t stage.Task) {
	var j job
	if !t.Finished() || json.Unmarshal(t.Data, &j) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = x.customer(j.Customer, false).Deliver(ctx, isPrinted{}) // fails only if the customer does not take messages
}

// condition describes the state of a task in a line.
func condition(t *stage.Task) string {
	var j job
	_ = json.Unmarshal(t.Data, &j) // without a customer, if that fails
	return fmt.Sprintf("job %d of %s: %s, %s", t.ID, j.Customer, t.Stage, t.Status)
}
