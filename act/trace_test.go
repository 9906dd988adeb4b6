package act_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// spy returns a Trace whose functions all note their names, by reflection: so a new field cannot be forgotten.
func spy(name string, h *history) *act.Trace {
	var tr act.Trace
	v := reflect.ValueOf(&tr).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		v.Field(i).Set(reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value {
			fmt.Fprint(h, name, f.Name, " ")
			return nil
		}))
	}
	return &tr
}

func TestAMultiTraceCallsEveryFunctionOfEveryTraceInOrder(t *testing.T) {
	var h history
	all := reflect.ValueOf(act.MultiTrace(nil, spy("a", &h), &act.Trace{}, spy("b", &h), nil, spy("c", &h))).Elem()
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		t.Run(name, func(t *testing.T) {
			in := make([]reflect.Value, all.Field(i).Type().NumIn())
			for j := range in {
				in[j] = reflect.Zero(all.Field(i).Type().In(j))
			}
			all.Field(i).Call(in)
			require.Equal(t, fmt.Sprintf("a%[1]s b%[1]s c%[1]s ", name), h.take())
		})
	}
}

func TestAMultiTraceAddsNothing(t *testing.T) {
	require.Nil(t, act.MultiTrace())
	require.Nil(t, act.MultiTrace(nil, nil))
	one := &act.Trace{}
	require.Same(t, one, act.MultiTrace(nil, one))
	require.Equal(t, &act.Trace{}, act.MultiTrace(one, one))
}
