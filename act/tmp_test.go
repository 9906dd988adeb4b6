package act_test
import ("testing";"github.com/daimon-go/daimon/act";"runtime")
func TestTmp(t *testing.T) {
	runtime.LockOSThread()
	for _, turns := range []int{64, 1<<20} {
	for _, ready := range []int{1,2,4,8,16,64,256} {
		s, _ := newScheduler(t, act.Config{Turns: turns})
		for range ready { s.Spawn(new(yielder)) }
		step(t,s,1000)
		r, ns := medianRatio(func(n int){step(t,s,n)}, bareCalls(t))
		t.Log(turns, ready, r, ns)
	}}
}
