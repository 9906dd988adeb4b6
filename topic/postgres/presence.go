package postgres

import (
	"context"

	"github.com/daimon-go/daimon/topic"
)

// member is somebody who is present on a machine.
type member struct{ topic, id string }

// Change implements topic.Engine. TODO
func (e *Engine) Change(ctx context.Context, changes []topic.Change) error { return nil }

// Members implements topic.Engine. TODO
func (e *Engine) Members(ctx context.Context, name string) ([]topic.Member, error) { return nil, nil }

func (e *Engine) leave(ctx context.Context, machine int64) error { return nil }

func (e *Engine) upkeep() {}
