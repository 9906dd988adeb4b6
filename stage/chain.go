package stage

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

type link struct {
	name      string
	processor string // does the work of a dynamic stage; "" for a static one
}

func (s link) dynamic() bool { return s.processor != "" }

// Chain is the sequence of stages of one kind of task: a static stage at which its tasks begin, and then dynamic and
// static stages in alternation. Begin and Then make a Chain, and New reports what is wrong with it. A Chain does not change,
// and may be used from any goroutine.
type Chain struct {
	stages []link // static ones at even places
}

// Begin returns a chain of one static stage, where tasks begin. Continue it with Then: a Kind needs a dynamic stage, too.
func Begin(static string) *Chain { return &Chain{[]link{{name: static}}} }

// Then returns a chain that continues c with a dynamic stage, whose work the processor with that id does, and the
// static stage that it leads to.
func (c *Chain) Then(dynamic, processor, static string) *Chain {
	return &Chain{append(slices.Clip(c.stages), link{dynamic, processor}, link{name: static})}
}

func (c *Chain) check(say require) {
	say(len(c.stages) >= 3, "needs a dynamic stage")
	seen := map[string]bool{}
	for i, s := range c.stages {
		say(s.name != "", "has no name for stage %d", i+1)
		say(s.name == "" || !seen[s.name], "has %s twice", s.name)
		say(storable(s.name), "has a name that is not UTF-8 without NUL: %q", s.name)
		say(i%2 == 0 || s.processor != "", "has no processor for the dynamic stage %q", s.name)
		seen[s.name] = true
	}
}

// storable reports whether all stores can keep a name.
func storable(name string) bool { return utf8.ValidString(name) && !strings.Contains(name, "\x00") }

// Stages returns the names of all stages in order. Tasks begin at the first and end at the last. Any goroutine.
func (c *Chain) Stages() []string {
	names := make([]string, len(c.stages))
	for i, s := range c.stages {
		names[i] = s.name
	}
	return names
}

func (c *Chain) last() link { return c.stages[len(c.stages)-1] }

// at returns the stage with that offset from the one of that name. Its error ends as the Failure of a task.
func (c *Chain) at(name string, offset int) (link, error) {
	i := slices.IndexFunc(c.stages, func(s link) bool { return s.name == name })
	switch {
	case i < 0:
		return link{}, fmt.Errorf("stage: not in the chain: %q", name)
	case i+offset < 0:
		return link{}, fmt.Errorf("stage: nothing is before the first stage: %s", name)
	case i+offset == len(c.stages):
		return link{}, fmt.Errorf("stage: nothing is behind the last stage: %s", name)
	}
	return c.stages[i+offset], nil
}
