package inspect

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/facts"
)

// A scheduler that is stuck answers with an old count of what is open on all of them.
func TestSumHasTheLatestCountOfOpenConnections(t *testing.T) {
	r := &report{Schedulers: []*scheduler{
		{Late: 3 * time.Second, Services: []facts.Service{{Name: "tcp", Open: 5, Accepted: 5}}},
		{Services: []facts.Service{{Name: "tcp", Open: 10, Accepted: 6}}},
	}}
	sum := services.sum(r)
	require.Len(t, sum, 1)
	require.Equal(t, []any{uint64(10), uint64(0), uint64(11)}, sum[0].cells[:3], "open, at most, accepted")
}

// The JSON is what programs rely on, so its fields are documented.
func TestTheFieldsOfTheJSONAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/inspect.md")
	require.NoError(t, err)
	_, doc, _ = bytes.Cut(doc, []byte("\n## JSON\n"))
	doc, _, _ = bytes.Cut(doc, []byte("\n## "))
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllSubmatch(doc, -1) {
		documented[string(name[1])] = true
	}
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			look(x.Elem())
		case reflect.Struct:
			if seen[x] || x == reflect.TypeFor[time.Time]() {
				return
			}
			seen[x] = true
			for i := range x.NumField() {
				f := x.Field(i)
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && !f.Anonymous {
					require.True(t, documented[name], "%v.%s: %q", x, f.Name, name)
				}
				if f.IsExported() || f.Anonymous {
					look(f.Type)
				}
			}
		}
	}
	look(reflect.TypeFor[report]())
	look(reflect.TypeFor[listing]())
	require.True(t, seen[reflect.TypeFor[stall]()])
}
