package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// maxState is how many bytes the states of all services may have together: 64 MiB.
const maxState = 64 << 20

// Keeper is a service whose state is passed on to the new program in an upgrade; secure.Tickets is one. List it in
// Upgrade.Services. The methods are called on any goroutine, one at a time.
//
//	the old program                        the new program
//	                                       Setup of all services
//	SaveState ───────────── state ───────▶ LoadState
//	                                       accepts
//	Settle(nil), then shutdown
type Keeper interface {
	// StateName returns the name by which the new program finds the state. It is unique among the Keepers of the
	// program, and the same in both programs.
	StateName() string
	// SaveState returns the present state. It is called when the new program is ready and waits for nothing else. Later
	// changes are not passed on, so a state that must not fork must not change until Settle: see [Settler]. ctx ends
	// after Upgrade.Timeout, after the Time of Upgrade.Terms, and when this program is told to shut down. Then the
	// upgrade is given up, even if SaveState has not returned; until it has, further upgrades are refused. The state
	// goes through a pipe, never through a file. If the states of all services have more than 64 MiB together, the
	// upgrade fails.
	SaveState(ctx context.Context) ([]byte, error)
	// LoadState is called when all services are set up, in the last set-up function, before the program accepts. It is
	// not called if there is no older program, or if the older program was killed in the middle. An error keeps the new
	// program from taking over.
	LoadState(state []byte) error
}

// Settler is a Keeper that is told how an upgrade went. It is for a state that must not change in both programs:
// SaveState stops all changes, and Settle allows them again.
type Settler interface {
	// Settle is called once after each SaveState, even after one that has failed. A nil err says that the new program
	// serves with the state; this program is told to shut down next. Otherwise the upgrade was given up because of err,
	// and this program goes on. Settle must not block.
	Settle(err error)
}

// findKeepers finds the Keepers among the services. A state that could be lost, or be taken for another one, is an
// error.
func (u *Upgrade) findKeepers() error {
	for _, v := range u.Services {
		_, named := v.(interface{ StateName() string })
		k, ok := v.(Keeper)
		switch {
		case !named:
		case !ok:
			return fmt.Errorf("%T has a StateName, but not the other methods of a Keeper", v)
		case slices.ContainsFunc(u.keepers, func(other Keeper) bool { return other.StateName() == k.StateName() }):
			return fmt.Errorf("two services have a state of the name %q", k.StateName())
		default:
			u.keepers = append(u.keepers, k)
		}
	}
	return nil
}

// state is the state of one Keeper. After the word that it may accept, the new program gets a list of states in JSON,
// and then all bytes.
type state struct {
	Name string
	Size uint64

	bytes    []byte
	of       Keeper
	returned chan error // what SaveState has
	late     bool       // SaveState has not returned in time
}

// fit returns an error if there are more than maxState bytes.
func fit(all []*state) error {
	sum, names := uint64(0), ""
	for _, x := range all {
		sum += min(x.Size, maxState+1)
		names += fmt.Sprintf("%q has %d, ", x.Name, x.Size)
	}
	if sum > maxState {
		return fmt.Errorf("the states of the services have too many bytes: %sand at most %d are possible together", names, maxState)
	}
	return nil
}

// save asks the Keepers for their states, until ctx ends.
func (u *Upgrade) save(ctx context.Context) error {
	if bound := u.terms().Time; bound > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, bound, fmt.Errorf("an end has %v", bound))
		defer cancel()
	}
	for _, k := range u.keepers {
		x := &state{Name: k.StateName(), of: k, returned: make(chan error, 1)}
		u.states = append(u.states, x)
		go func() {
			var err error
			x.bytes, err = k.SaveState(ctx)
			x.returned <- err
		}()
		var err error
		select {
		case err = <-x.returned:
		case <-ctx.Done():
			x.late = true
			u.log.Warn("SaveState has not returned, and is left behind", zap.String("state", x.Name))
		}
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("not in time: %w", cause)
		}
		if err != nil {
			return fmt.Errorf("the state %q was not saved: %w", x.Name, err)
		}
		x.Size = uint64(len(x.bytes))
	}
	return fit(u.states)
}

// settle tells the Keepers that were asked how the upgrade went, and allows another one. Only the last of them may be late: it is
// told when it has returned.
func (u *Upgrade) settle(err error) {
	all := u.states
	u.states = nil
	for _, x := range all {
		if x.late {
			go func() {
				<-x.returned
				x.settle(err)
				u.one.Unlock()
			}()
			return
		}
		x.settle(err)
	}
	u.one.Unlock()
}

func (x *state) settle(err error) {
	if s, ok := x.of.(Settler); ok {
		s.Settle(err)
	}
}

// send has the new program accept, with the states.
func (c *child) send(all []*state) error {
	word := []byte(accept)
	if len(all) > 0 {
		list, _ := json.Marshal(all) // names and sizes
		word = fmt.Appendf(word, " %s", list)
	}
	c.sending = true
	_, err := c.to.Write(append(word, '\n'))
	for i := 0; i < len(all) && err == nil; i++ {
		_, err = c.to.Write(all[i].bytes)
	}
	c.sending = err != nil
	return ended(err)
}

// receive returns the word of the older program, and the states after it.
func (p *predecessor) receive() (word string, all []*state, err error) {
	if word, err = p.lines.ReadString('\n'); err != nil {
		return "", nil, err
	}
	word = strings.TrimSuffix(word, "\n")
	list, accepted := strings.CutPrefix(word, accept+" ")
	if !accepted {
		return word, nil, nil
	}
	if err = json.Unmarshal([]byte(list), &all); err == nil {
		err = fit(all)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		all[i].bytes = make([]byte, all[i].Size)
		_, err = io.ReadFull(p.lines, all[i].bytes)
	}
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return accept, all, err
}

// load gives the Keepers their states.
func (u *Upgrade) load(all []*state) error {
	for _, k := range u.keepers {
		for _, x := range all {
			if x.Name != k.StateName() {
				continue
			}
			if err := k.LoadState(x.bytes); err != nil {
				return fmt.Errorf("the state %q was not loaded: %w", x.Name, err)
			}
		}
	}
	return nil
}
