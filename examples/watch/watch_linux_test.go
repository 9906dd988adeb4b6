package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

func Example() {
	dir, err := os.MkdirTemp("", "watch")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = watch(dir, []string{"/bin/sh", "-c", "cd $0; mkdir a; mv a b; rmdir b; cd /; rmdir $0; exit 3", dir})
	}
	fmt.Println(err)
	// Output:
	// a made
	// a moved away
	// b moved here
	// b removed
	// directory is gone
	// exit status 3
}

func TestAFolderThatCannotBeWatchedLeavesNoDescriptorOpen(t *testing.T) {
	s := act.New(act.Config{})
	defer func() { require.NoError(t, s.Close()) }()
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	before := open()
	_, err := watchFolder(s, "no such folder")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, before, open())
}
