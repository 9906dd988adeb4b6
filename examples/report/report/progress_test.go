package report

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is printed in rounds of looks at the tasks of a store.
func TestProgress(t *testing.T) {
	soon := time.Now().Add(time.Second)
	task := func(id stage.ID, at string, status stage.Status, due time.Time) stage.Task {
		return stage.Task{ID: id, Stage: at, Status: status, Due: due, Data: []byte("/" + string(rune('a'+id-1)))}
	}
	failing := func(t stage.Task, attempt int) stage.Task {
		t.Attempt, t.Failure = attempt, "no\nluck\n\nreport.count()\n"
		return t
	}
	var out strings.Builder
	never := time.Time{}
	n := newProgress(&out, []stage.Task{
		task(1, "FINISHED", stage.Normal, never),
		failing(task(2, "CREATED", stage.Error, never), 5),
		task(3, "WORDS_COUNTED", stage.Normal, soon),
		task(4, "CREATED", stage.Suspended, never),
	})
	n.added(5, "/e")
	for _, round := range []struct {
		tasks []stage.Task
		over  stage.ID
		left  bool
		says  string
	}{
		{[]stage.Task{
			task(1, "FINISHED", stage.Normal, never),
			failing(task(2, "CREATED", stage.Error, never), 5),
			task(3, "WORDS_COUNTED", stage.Normal, soon),
			task(4, "CREATED", stage.Suspended, never),
			task(5, "CREATED", stage.Normal, soon),
		}, 1, true, "5 /e: added\n3 /c: WORDS_COUNTED, NORMAL\n"},
		{[]stage.Task{
			task(2, "CREATED", stage.Resumed, soon),
			task(3, "BUILDING_REPORT", stage.InProcessing, soon),
			task(4, "CREATED", stage.Suspended, never),
			failing(task(5, "CREATED", stage.Error, soon), 1),
		}, 1, true, "2 /b: CREATED, RESUMED\n3 /c: BUILDING_REPORT, IN_PROCESSING\n5 /e: CREATED, ERROR, failures: 1: \"no\\nluck\"\n"},
		{[]stage.Task{
			task(2, "CREATED", stage.Cancelled, never),
			task(3, "FINISHED", stage.Normal, never),
			task(4, "CREATED", stage.Suspended, never),
			failing(task(5, "CREATED", stage.Error, never), 2),
		}, 3, false, "2 /b: CREATED, CANCELLED\n3 /c: FINISHED\n5 /e: CREATED, ERROR, failures: 2: \"no\\nluck\"\n"},
		{[]stage.Task{
			task(4, "CREATED", stage.Suspended, never),
			failing(task(5, "CREATED", stage.Error, never), 2),
		}, 3, false, ""},
	} {
		require.Equal(t, round.left, n.look(round.tasks))
		require.Equal(t, round.over, n.over)
		require.Equal(t, round.says, out.String())
		out.Reset()
	}
	require.Equal(t, "1 finished, 1 failed, 1 cancelled", n.summary())
	require.Equal(t, 1, n.failures())
	require.Len(t, n.said, 2, "of those that may change")
}

func TestShown(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for path, text := range map[string]string{
		here + "/a": "a", here + "/a/b": "a/b", "/a": "/a", here + "x": here + "x", "/two\nlines": `"/two\nlines"`,
		"/\xff": `"/\xff"`,
	} {
		require.Equal(t, text, shown(path))
	}
}
