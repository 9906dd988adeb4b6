package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// All classes of appendix A of PostgreSQL's documentation, and the codes that differ from their class.
func TestRepetitions(t *testing.T) {
	for want, codes := range map[string]string{
		"never": `03000 09000 0B000 0F000 0L000 0P000 0Z000 10608 20000 21000 22021 23505 24000 25001 25P02 27000 2BP01 2D000 2F000 34000
			38000 39000 3B000 3F000 40002 42601 42P01 44000 54001 55P02 55P04 F0000 HV000 P0001 ?`,
		"perhaps": `0A000 26000 28P01 3D000 42501 42P05 53400 54000 55000 57014 XX000 XX002 XXABC`,
		"later": `08006 08P01 25006 25P03 25P04 40001 40P01 53100 53200 53300 55006 55P03 57000 57P01 57P03 57P05 58030 58P01 72000
			HV00N`,
	} {
		for _, code := range strings.Fields(codes) {
			require.Equal(t, want, postgres.Repetition(code), code)
		}
	}
}

// A server refuses all that changes a task, with codes that a trigger raises. What was broken: a stage without a Commit
// failed for good when its end was cancelled, or could not be written for a while. Only what no repetition brings about
// is permanent, and only the end of a stage. A connection that can write nothing is not used again.
func TestRefused(t *testing.T) {
	s := open(t, newConfig(t))
	refuse := func(code string) {
		do(t, s, strings.NewReplacer("its.", s.Schema()+".", "99999", code).Replace(`
			CREATE OR REPLACE FUNCTION its.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '99999'; END $$;
			CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON its.task EXECUTE FUNCTION its.refuse()`))
	}
	back := store.Return{Stage: "CREATED", Status: store.Normal}
	commit := func(context.Context, store.Tx) error { return nil }
	for name, call := range map[string]func(l store.Lease) error{
		"a finish": func(l store.Lease) error { return s.Finish(t.Context(), l, last, nil) },
		"a commit": func(l store.Lease) error { return s.Finish(t.Context(), l, last, commit) },
		"a return": func(l store.Lease) error { _, err := s.Return(t.Context(), l, back); return err },
		"an enter": func(l store.Lease) error { _, err := s.Enter(t.Context(), l, "ANOTHER", 0); return err },
		"a beat":   func(l store.Lease) error { return renewed(t, s, l, 2*time.Minute) },
		"a cancel": func(l store.Lease) error { _, err := s.Cancel(t.Context(), l.Task); return err },
		"a purge":  func(store.Lease) error { _, err := s.Purge(t.Context(), store.Failed, 0, 0); return err },
		"a claim": func(store.Lease) error {
			_, err := s.Claim(t.Context(), store.Claim{Kinds: []string{"a"}, Limit: 1, Length: time.Hour})
			return err
		},
		"an enqueue": func(store.Lease) error {
			_, err := s.Enqueue(t.Context(), store.NewTask{Kind: "b", Stage: "CREATED"})
			return err
		},
		"a statement of the user": func(l store.Lease) error {
			c, err := s.Pool().Acquire(t.Context())
			require.NoError(t, err)
			defer c.Release()
			_, err = c.Exec(t.Context(), `UPDATE `+s.Schema()+`.task SET data = NULL WHERE id = $1`, l.Task)
			require.Equal(t, err != nil && strings.Contains(err.Error(), "25006"), c.Conn().IsClosed())
			return err
		},
	} {
		for code, permanent := range map[string]bool{"25006": false, "57014": false, "25P04": false, "XX000": false, "23514": true} {
			l := claimed(t, s, time.Hour)
			refuse(code)
			err := call(l)
			require.ErrorContains(t, err, code, name)
			isEnd := name == "a finish" || name == "a commit"
			require.Equal(t, permanent && isEnd, errors.Is(err, store.ErrPermanent), "%s: %v", name, err)
			do(t, s, `DROP TRIGGER refuse ON `+s.Schema()+`.task`)
			require.NoError(t, call(l), "%s, again", name)
		}
	}
}
