package pairs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is a subject beside its yardstick, and the yardstick once more.
var table = Table{
	Columns: []string{"subject", "yardstick", "control"},
	Ratios:  []Ratio{{Of: 0, To: 1, Limit: 0.5}, {Of: 2, To: 1}},
}

func TestTheTableHasAllPairsAndTheirSpreads(t *testing.T) {
	var out strings.Builder
	costs := []float64{100, 200, 210 /* and back */, 190, 200, 120, 90, 200, 200}
	medians, err := table.Measure(&out, 3, func(int) (cost float64, err error) {
		cost, costs = costs[0], costs[1:]
		return cost, nil
	})
	require.NoError(t, err)
	require.Equal(t, []float64{0.5, 1}, medians)
	require.Equal(t, strings.TrimPrefix(`
pair     subject  yardstick  control  subject/yardstick  control/yardstick
1            100        200      210              0.500              1.050
2            120        200      190              0.600              0.950
3             90        200      200              0.450              1.000
median       100        200      200              0.500              1.000
min           90        200      190              0.450              0.950
max          120        200      210              0.600              1.050
limit                                             0.500
`, "\n"), out.String())
}

func TestJudgeNamesWhatIsAboveItsLimit(t *testing.T) {
	require.NoError(t, table.Judge([]float64{0.5, 7}))
	require.EqualError(t, table.Judge([]float64{0.51, 7}), "the median ratio subject/yardstick, 0.510, is above 0.500")
}
