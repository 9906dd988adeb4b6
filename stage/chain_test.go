package stage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
)

func reportChain() *stage.Builder {
	return stage.Begin("CREATED").Then("LOADING_DATA", "load", "DATA_LOADED").Then("BUILDING_REPORT", "build", "FINISHED")
}

func TestAChainIsStaticAndDynamicByTurns(t *testing.T) {
	c, err := reportChain().Build()
	require.NoError(t, err)
	require.Equal(t, []stage.Stage{
		{Name: "CREATED"}, {Name: "LOADING_DATA", Processor: "load"},
		{Name: "DATA_LOADED"}, {Name: "BUILDING_REPORT", Processor: "build"},
		{Name: "FINISHED"},
	}, c.Stages())
	for i, s := range c.Stages() {
		require.Equal(t, i%2 == 1, s.Dynamic(), s.Name)
	}
	require.Equal(t, "CREATED", c.First().Name)
	require.Equal(t, "FINISHED", c.Last().Name)
}

func TestAChainDoesNotChange(t *testing.T) {
	b := reportChain()
	c := b.MustBuild()
	b.Then("PRINTING", "print", "PRINTED")
	c.Stages()[0].Name = "changed"
	require.Equal(t, "CREATED", c.First().Name)
	require.Equal(t, "FINISHED", c.Last().Name)
	_, err := c.Find("PRINTED")
	require.ErrorIs(t, err, stage.ErrUnknownStage)
}

func TestWhatIsWrongWithAChainIsSaidAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		chain *stage.Builder
		says  []string
	}{
		"no stage to be worked on": {stage.Begin("A"), []string{"stage: a chain needs a dynamic stage"}},
		"an empty first stage":     {stage.Begin("").Then("A", "p", "B"), []string{"stage: stage 1 of the chain has no name"}},
		"an empty dynamic stage":   {stage.Begin("A").Then("", "p", "B"), []string{"stage: stage 2 of the chain has no name"}},
		"an empty static stage":    {stage.Begin("A").Then("B", "p", ""), []string{"stage: stage 3 of the chain has no name"}},
		"two empty ones":           {stage.Begin("").Then("A", "p", ""), []string{"stage: stage 1 of the chain has no name", "stage: stage 3 of the chain has no name"}},
		"a static name twice":      {stage.Begin("A").Then("B", "p", "A"), []string{"stage: A is twice in the chain"}},
		"a dynamic name twice":     {stage.Begin("A").Then("B", "p", "C").Then("B", "p", "D"), []string{"stage: B is twice in the chain"}},
		"a name of both kinds":     {stage.Begin("A").Then("A", "p", "B"), []string{"stage: A is twice in the chain"}},
		"no processor":             {stage.Begin("A").Then("B", "", "C"), []string{`stage: the dynamic stage "B" has no processor`}},
		"everything": {stage.Begin("").Then("A", "", "A").Then("B", "p", "A"), []string{
			"stage: stage 1 of the chain has no name",
			`stage: the dynamic stage "A" has no processor`,
			"stage: A is twice in the chain",
			"stage: A is twice in the chain",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := row.chain.Build()
			require.EqualError(t, err, strings.Join(row.says, "\n"))
			require.Nil(t, c)
			require.PanicsWithError(t, err.Error(), func() { row.chain.MustBuild() })
		})
	}
}

func TestOneProcessorMayHaveSeveralStages(t *testing.T) {
	_, err := stage.Begin("A").Then("B", "p", "C").Then("D", "p", "E").Build()
	require.NoError(t, err)
}

func TestTheWayThroughAChain(t *testing.T) {
	c := reportChain().MustBuild()
	for _, row := range []struct{ name, previous, next string }{
		{"CREATED", "", "LOADING_DATA"},
		{"LOADING_DATA", "CREATED", "DATA_LOADED"},
		{"DATA_LOADED", "LOADING_DATA", "BUILDING_REPORT"},
		{"BUILDING_REPORT", "DATA_LOADED", "FINISHED"},
		{"FINISHED", "BUILDING_REPORT", ""},
	} {
		s, err := c.Find(row.name)
		require.NoError(t, err)
		require.Equal(t, row.name, s.Name)
		previous, err := c.Previous(row.name)
		require.Equal(t, row.previous, previous.Name)
		require.Equal(t, row.previous == "", err != nil)
		next, err := c.Next(row.name)
		require.Equal(t, row.next, next.Name)
		require.Equal(t, row.next == "", err != nil)
	}
	_, err := c.Previous("CREATED")
	require.ErrorIs(t, err, stage.ErrFirstStage)
	require.ErrorContains(t, err, "CREATED")
	_, err = c.Next("FINISHED")
	require.ErrorIs(t, err, stage.ErrLastStage)
	require.ErrorContains(t, err, "FINISHED")
	for _, f := range []func(string) (stage.Stage, error){c.Find, c.Next, c.Previous} {
		s, err := f("GONE")
		require.ErrorIs(t, err, stage.ErrUnknownStage)
		require.ErrorContains(t, err, `"GONE"`)
		require.Zero(t, s)
	}
}
