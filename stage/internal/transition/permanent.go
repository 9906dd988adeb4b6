package transition

import "github.com/daimon-go/daimon/stage/store"

// Permanent wraps err as a store.ErrPermanent with the text of err. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

type permanent struct{ error }

func (p permanent) Unwrap() error        { return p.error }
func (p permanent) Is(target error) bool { return target == store.ErrPermanent }
