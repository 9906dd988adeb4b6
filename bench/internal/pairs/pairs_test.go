package pairs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is a subject beside its yardstick, and the yardstick once more.
var table = Table{
	Columns: []string{"subject", "yardstick", "control"},
	Ratios:  []Ratio{{Of: 0, To: 1, Limit: 0.5}, {Of: 2, To: 1}},
}

func TestTheOrderIsTurnedRoundWithEveryPair(t *testing.T) {
	var order strings.Builder
	_, err := table.Measure(new(strings.Builder), 3, func(column int) (float64, error) {
		fmt.Fprint(&order, column)
		return 1, nil
	})
	require.NoError(t, err)
	require.Equal(t, "012"+"210"+"012", order.String())
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

func TestARunThatFailsEndsTheMeasurement(t *testing.T) {
	broken := errors.New("broken")
	_, err := table.Measure(new(strings.Builder), 3, func(column int) (float64, error) {
		if column == 2 {
			return 0, broken
		}
		return 1, nil
	})
	require.ErrorIs(t, err, broken)
}

func TestJudgeNamesWhatIsAboveItsLimit(t *testing.T) {
	require.NoError(t, table.Judge([]float64{0.5, 7}))
	require.EqualError(t, table.Judge([]float64{0.51, 7}), "the median ratio subject/yardstick, 0.510, is above 0.500")
}

func TestSpread(t *testing.T) {
	for name, row := range map[string]struct {
		in   []float64
		want Spread
	}{
		"one figure":             {[]float64{3}, Spread{3, 3, 3}},
		"an odd number":          {[]float64{9, 1, 2}, Spread{2, 1, 9}},
		"an even number":         {[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4}},
		"a stray one is but one": {[]float64{1, 1, 1, 1, 1000}, Spread{1, 1, 1000}},
	} {
		in := append([]float64(nil), row.in...)
		require.Equal(t, row.want, spread(in), name)
		require.Equal(t, row.in, in, "%s: the input is left alone", name)
	}
}
