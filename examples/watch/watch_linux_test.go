package main

import (
	"fmt"
	"os"
)

func Example() {
	dir, err := os.MkdirTemp("", "watch")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = watch(dir, []string{"/bin/sh", "-c", "cd $0; mkdir a; mv a b; rmdir b; exit 3", dir})
	}
	fmt.Println(err)
	// Output:
	// a made
	// a moved away
	// b moved here
	// b removed
	// exit status 3
}
