package stage

import (
	"errors"
	"fmt"
	"slices"
)

// Stage is one of a chain.
type Stage struct {
	Name string
	// Processor is the id of what does the work of a dynamic stage; a static one has none.
	Processor string
}

// Dynamic tells whether s is one that is being worked on, and not a lasting result.
func (s Stage) Dynamic() bool { return s.Processor != "" }

// Chain is the way of one kind of task: a static stage at which its tasks begin, and then by turns a dynamic and a
// static one.
//
//	CREATED ──LOADING_DATA──▶ DATA_LOADED ──BUILDING_REPORT──▶ FINISHED
//
// A Chain does not change. It may be used from any goroutine.
type Chain struct {
	stages []Stage // static ones at even places
}

// Builder collects the stages of a Chain. It is used once.
type Builder struct {
	stages []Stage
}

// Begin is the beginning of a chain, with its first static stage.
//
//	chain, err := stage.Begin("CREATED").
//		Then("LOADING_DATA", "load", "DATA_LOADED").
//		Then("BUILDING_REPORT", "build", "FINISHED").
//		Build()
func Begin(static string) *Builder {
	return &Builder{stages: []Stage{{Name: static}}}
}

// Then adds a dynamic stage, the id of its processor, and the static stage that it leads to.
func (b *Builder) Then(dynamic, processor, static string) *Builder {
	b.stages = append(b.stages, Stage{dynamic, processor}, Stage{Name: static})
	return b
}

// Build returns the chain, or all that is wrong with it: no stage to be worked on, a name that is empty or there
// twice, a processor without an id.
func (b *Builder) Build() (*Chain, error) {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("stage: "+format, args...)) }
	if len(b.stages) == 1 {
		say("a chain needs a dynamic stage")
	}
	seen := map[string]bool{}
	for i, s := range b.stages {
		switch {
		case s.Name == "":
			say("stage %d of the chain has no name", i+1)
		case seen[s.Name]:
			say("%s is twice in the chain", s.Name)
		}
		if i%2 == 1 && s.Processor == "" {
			say("the dynamic stage %q has no processor", s.Name)
		}
		seen[s.Name] = true
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return &Chain{slices.Clone(b.stages)}, nil
}

// MustBuild is Build for chains that are known when the program is written: it panics instead.
func (b *Builder) MustBuild() *Chain {
	c, err := b.Build()
	if err != nil {
		panic(err)
	}
	return c
}

// Errors of Find, Next and Previous.
var (
	ErrUnknownStage = errors.New("stage: not in the chain")
	ErrFirstStage   = errors.New("stage: nothing is before the first stage")
	ErrLastStage    = errors.New("stage: nothing is behind the last stage")
)

// Stages returns all of them in order, as a copy.
func (c *Chain) Stages() []Stage { return slices.Clone(c.stages) }

// First is where tasks begin, Last where they end: both static.
func (c *Chain) First() Stage { return c.stages[0] }

// Last is where tasks end.
func (c *Chain) Last() Stage { return c.stages[len(c.stages)-1] }

// Find returns the stage of that name.
func (c *Chain) Find(name string) (Stage, error) { return c.at(name, 0) }

// Next is the stage behind the one of that name: behind a static one a dynamic one, and the other way round.
func (c *Chain) Next(name string) (Stage, error) { return c.at(name, +1) }

// Previous is the stage before the one of that name.
func (c *Chain) Previous(name string) (Stage, error) { return c.at(name, -1) }

func (c *Chain) at(name string, offset int) (Stage, error) {
	i := slices.IndexFunc(c.stages, func(s Stage) bool { return s.Name == name })
	switch {
	case i < 0:
		return Stage{}, fmt.Errorf("%w: %q", ErrUnknownStage, name)
	case i+offset < 0:
		return Stage{}, fmt.Errorf("%w: %s", ErrFirstStage, name)
	case i+offset == len(c.stages):
		return Stage{}, fmt.Errorf("%w: %s", ErrLastStage, name)
	}
	return c.stages[i+offset], nil
}
