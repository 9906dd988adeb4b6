package race_test

import (
	"fmt"

	"github.com/daimon-go/daimon/internal/race"
)

// A buffer that is given back is poisoned where the price does not matter.
func Example() {
	lent := []byte("lent for this turn")
	if race.Enabled {
		clear(lent)
	}
	fmt.Println(len(lent))
	// Output: 18
}
