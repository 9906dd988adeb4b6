package report

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/stage"
)

// count is the result of the first stage.
type count struct {
	changed time.Time // when the file was changed last
	lines   int64     // as wc -l counts them: line feeds
	bytes   int64

	words     int64
	different int64
	rest      int64       // words that were counted without being told apart
	top       []frequency // at most maxKept
}

// countWords is the processor of the first stage. It reads the file and returns what is to be written.
func (w *Work) countWords(ctx context.Context, t *stage.Task) (stage.Commit, error) {
	c, err := w.read(ctx, string(t.Data))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx stage.Tx) error { return w.Reports.insertCount(ctx, tx, t.ID, c) }, nil
}

// read counts the words of a file. If the file changes meanwhile, that is an error after which the stage is repeated.
func (w *Work) read(ctx context.Context, path string) (*count, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c, err := w.scan(ctx, f)
	if err != nil {
		return nil, about(path, err)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, fmt.Errorf("%s: it was changed while it was read", path)
	}
	c.changed = before.ModTime()
	return c, nil
}

// open opens a regular file. Its error is permanent if trying again would not help.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path) // first: opening a pipe waits for a writer
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return nil, stage.Permanent(err)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, stage.Permanent(fmt.Errorf("%s: it is a directory", path))
	case !info.Mode().IsRegular():
		return nil, stage.Permanent(fmt.Errorf("%s: it is no regular file", path))
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, stage.Permanent(err)
	}
	return f, err
}

// about adds the path to an error, unless package os has done so or the error says that the stage must not go on.
func about(path string, err error) error {
	var named *fs.PathError
	switch {
	case errors.As(err, &named):
		return err
	case errors.Is(err, errNoText):
		return stage.Permanent(fmt.Errorf("%s: %w", path, err))
	}
	return err
}

var errNoText = errors.New("it is not a text in UTF-8")

// stride is how many characters of a line are read between two checks whether the stage must stop.
const stride = 1 << 16

// scan counts the words that r has. Lines may have any length.
func (w *Work) scan(ctx context.Context, r io.Reader) (*count, error) {
	in, c, all := bufio.NewReaderSize(r, 1<<16), &count{}, newWords()
	for n := 0; ; n++ {
		char, size, err := in.ReadRune()
		switch {
		case err == io.EOF:
			all.end()
			c.words, c.different, c.rest, c.top = all.n, int64(len(all.counts)), all.rest, all.top(maxKept)
			return c, nil
		case err != nil:
			return nil, err
		case char == 0, char == utf8.RuneError && size == 1:
			return nil, errNoText
		}
		all.add(char)
		c.bytes += int64(size)
		switch {
		case char == '\n':
			c.lines++
			err = w.rest(ctx)
		case n%stride == 0:
			err = stage.CheckSuspended(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// rest is called between two lines. It pauses for Pace and returns an error if the stage must stop.
func (w *Work) rest(ctx context.Context) error {
	if w.Pace > 0 {
		select {
		case <-time.After(w.Pace):
		case <-ctx.Done():
		}
	}
	return stage.CheckSuspended(ctx)
}
