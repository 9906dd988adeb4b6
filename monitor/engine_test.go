package monitor

import (
	"net"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/readiness"
)

// Each option of this package has one below, which a new one must not lack.
func TestNoOptionOfAnEngineIsLost(t *testing.T) {
	reaches(t, ListenOptions.below)
	reaches(t, DialOptions.below)
}

// reaches checks that each field of From changes what below returns.
func reaches[From, To any](t *testing.T, below func(From) To) {
	t.Helper()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[From]()) {
		var o From
		var something any
		switch f.Type.Kind() {
		case reflect.Bool:
			something = true
		case reflect.Pointer:
			something = reflect.New(f.Type.Elem()).Interface()
		case reflect.Func:
			something = func(string) error { return nil }
		case reflect.Interface:
			if something = (&net.TCPAddr{}); f.Type == reflect.TypeFor[Acceptor]() {
				something = readinessAcceptor{&readiness.Acceptor{}}
			}
		default:
			something = 1
		}
		v := reflect.ValueOf(something)
		if v.CanConvert(f.Type) {
			v = v.Convert(f.Type)
		}
		reflect.ValueOf(&o).Elem().FieldByIndex(f.Index).Set(v)
		require.False(t, reflect.DeepEqual(below(*new(From)), below(o)), "%T.%s", o, f.Name)
	}
}
