package enginetest

import (
	"slices"
	"testing"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
)

// Pair is a Store with a second connection to the same tasks, as another process has it. Tests look at tasks through
// Other, and engines that stand for other processes use it.
type Pair struct {
	stage.Store
	Other stage.Store
}

// Run tests engines over the stores that open returns: for each test an empty one, with a clock that runs. open registers
// the closing with t. A store that can be opened twice should be a Pair.
//
// What an engine in a Group does otherwise than one on goroutines does not depend on the store. So over a Pair, which is
// mostly slow, the tests that make sense on both hosts run in a Group only with DAIMON_TESTS=long.
func Run(t *testing.T, open func(t *testing.T) stage.Store) {
	paired := false
	for _, h := range []host{goroutines, group} {
		t.Run("life/"+h.name, func(t *testing.T) {
			w := newWorld(t, open, h)
			paired = w.paired
			testLife(w, false)
		})
	}
	t.Run("life/Fire", func(t *testing.T) { testLife(newWorld(t, open, goroutines), true) })
	for _, h := range []host{goroutines, group} {
		t.Run(h.name, func(t *testing.T) {
			full := tier.Current() >= tier.Full
			var inTurn, parallel []test
			if h.name == goroutines.name || !paired || tier.Current() == tier.Long {
				parallel = tests
				if full {
					inTurn, parallel = timed, slices.Concat(tests, slow)
				}
			}
			if h.name == group.name {
				parallel = slices.Concat(parallel, inGroup)
				if full {
					parallel = slices.Concat(parallel, slowInGroup)
				}
			}
			for _, test := range inTurn {
				t.Run(test.name, func(t *testing.T) { test.do(newWorld(t, open, h)) })
			}
			for _, test := range parallel {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.do(newWorld(t, open, h))
				})
			}
		})
	}
}

// test is a test of the suite. It runs on each host.
type test struct {
	name string
	do   func(w *world)
}

// slow are tests that let leases end, or are patient with a store, by the real clock: they take seconds, and a worker
// that the machine holds up for as long as a lease loses it.
var slow = []test{
	{"a long stage in a living worker", testLongStage},
	{"a worker whose heartbeats fail", testHeartbeatsFail},
	{"a call that hangs is made again", testCallHangs},
	{"a stop while the store hangs", testStopHanging},
	{"a claim that comes after the end", testLateClaim},
	{"a claim that is done after the end", testClaimDoneLate},
	{"stops at every moment", testStops},
	{"a store that fails", testStoreFails},
	{"a store that does not answer is not pressed", testPatience},
}

// timed are tests that measure time. They do not run in parallel.
var timed = []test{
	{"a stop names the tasks that ignore it", testStopNames},
}

var tests = []test{
	{"what is enqueued here begins at once", testEnqueueHere},
	{"what comes from elsewhere is found by polling", testEnqueueElsewhere},
	{"each task is given to one", testFireOnce},
	{"fire claims as many as there is room for", testFireRoom},
	{"fire while another claim is under way", testFireBeside},
	{"fire brings tasks to a running engine", testFireRunning},
	{"an engine runs once at a time", testRunOnce},
	{"tasks that are due later", testDueLater},
	{"a key that many engines enqueue", testKeyOfEngines},
	{"data of a type", testTyped},
	{"counts, pages and purges", testPages},
	{"periodic tasks", testPeriodic},
	{"tasks that have ended are deleted", testRetention},
	{"wait", testWait},
	{"kinds", testKinds},
	{"queues", testQueues},
	{"priorities of kinds", testPriority},
	{"pauses of kinds", testPauseKind},

	{"waits for tasks that end here", testAwaitHere},
	{"waits for tasks that end elsewhere", testAwaitElsewhere},
	{"waits in vain", testAwaitInVain},
	{"waits through an engine that has stopped", testAwaitStopped},

	{"middleware is called in order", testMiddleware},
	{"the ends of tasks are told", testEnded},
	{"a panic when an end is told", testEndedBadly},
	{"a stop while an end is told", testEndedLong},

	{"suspend answers true, then false", testSuspend},
	{"forty-two finish while three are suspended", func(w *world) { testFortyFive(w, false) }},
	{"forty-two finish while three are suspended from elsewhere", func(w *world) { testFortyFive(w, true) }},
	{"suspended in the queue", testSuspendQueued},
	{"suspended in back-off", testSuspendBackoff},
	{"nothing to suspend", testNothingToSuspend},
	{"suspended between stages", testSuspendBetween},
	{"suspended before the end of a stage is written", testSuspendFinish},
	{"suspended after the last stage", testSuspendAfter},
	{"suspended while attempts fail", testSuspendFailing},
	{"a processor that ignores a request", testIgnored},
	{"a processor that makes an error of its suspension", testSuspendError},
	{"a processor that suspends its task", testSuspendsItself},
	{"resume withdraws a suspension", testWithdraw},
	{"resume after the processor has seen the suspension", testWithdrawSeen},
	{"resume of what has failed", testResumeFailed},
	{"cancel", testCancel},
	{"a suspended task survives its worker", testSuspendLost},

	{"a heartbeat reports a lost lease", testLossReported},
	{"the context of a processor ends", testContextEnds},
	{"a worker that has lost its lease can change nothing", testFenced},
	{"a worker that dies", testDeath},
	{"too many workers are lost", testDeaths},
	{"a worker that dies between stages", testDeathBetween},
	{"found at a dynamic stage", testFoundDynamic},
	{"progress survives a worker that dies", testProgress},

	{"attempts", testAttempts},
	{"permanent errors", testPermanent},
	{"the record of failures", testFailures},
	{"a task that is put off", testSnooze},
	{"a processor that takes too long", testTimeout},
	{"a kind with terms of its own", testTerms},
	{"a kind with workers of its own", testKindWorkers},
	{"each stage has its own attempts", testAttemptsAnew},
	{"an interruption is neither attempt nor error", testInterrupted},

	{"a commit that finds itself interrupted", testCommitInterrupted},

	{"a stop in a later stage", testStopLater},
	{"a stop of the engine alone", testStopAlone},
	{"late processors change nothing", testLate},
	{"again after a stop", testAgain},
	{"the end of a context is a stop", testContext},

	{"troubles are the task's", testTroubles},
	{"a transaction that cannot be mended", testSpoilt},
	{"claims whose answers are lost", testClaimsLost},
	{"requests that the store does not answer", testRequestsFail},
}

// inGroup are the tests that make sense in a Group only.
var inGroup = []test{
	{"asked in a turn", testAsk},
	{"asked for too long", testAskLong},
	{"asked while others wait for answers", testAskBeside},
	{"an executor of one's own", testExecutor},
}

// slowInGroup are those of them that make sense in a Group only.
var slowInGroup = []test{
	{"processors delay neither requests nor heartbeats", testSlots},
}
