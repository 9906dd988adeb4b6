package stage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
)

func reportChain() *stage.Chain {
	return stage.Begin("CREATED").Then("LOADING_DATA", "load", "DATA_LOADED").Then("BUILDING_REPORT", "build", "FINISHED")
}

func TestAChainDoesNotChange(t *testing.T) {
	c := reportChain()
	printed, sent := c.Then("PRINTING", "print", "PRINTED"), c.Then("SENDING", "send", "SENT")
	c.Stages()[0].Name = "changed"
	require.Equal(t, reportChain().Stages(), c.Stages())
	require.Equal(t, "PRINTED", printed.Stages()[6].Name)
	require.Equal(t, "SENT", sent.Stages()[6].Name)
}

func TestInvalidChains(t *testing.T) {
	for name, row := range map[string]struct {
		chain *stage.Chain
		says  []string
	}{
		"the zero chain":         {&stage.Chain{}, []string{`needs a dynamic stage`}},
		"no dynamic stage":       {stage.Begin("A"), []string{`needs a dynamic stage`}},
		"an empty first stage":   {stage.Begin("").Then("A", "p", "B"), []string{`has no name for stage 1`}},
		"an empty dynamic stage": {stage.Begin("A").Then("", "p", "B"), []string{`has no name for stage 2`}},
		"an empty static stage":  {stage.Begin("A").Then("B", "p", ""), []string{`has no name for stage 3`}},
		"two empty ones":         {stage.Begin("").Then("A", "p", ""), []string{`has no name for stage 1`, `has no name for stage 3`}},
		"a static name twice":    {stage.Begin("A").Then("B", "p", "A"), []string{`has A twice`}},
		"a dynamic name twice":   {stage.Begin("A").Then("B", "p", "C").Then("B", "p", "D"), []string{`has B twice`}},
		"a name of both kinds":   {stage.Begin("A").Then("A", "p", "B"), []string{`has A twice`}},
		"no processor":           {stage.Begin("A").Then("B", "", "C"), []string{`has no processor for the dynamic stage "B"`}},
		"everything": {stage.Begin("").Then("A", "", "A").Then("B", "p", "A"), []string{
			`has no name for stage 1`, `has no processor for the dynamic stage "A"`, `has A twice`, `has A twice`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			cfg.Kinds["x"] = stage.Kind{Chain: row.chain}
			_, err := stage.New(cfg)
			const each = `stage: Config.Kinds["x"].Chain `
			require.EqualError(t, err, each+strings.Join(row.says, "\n"+each))
		})
	}
}
