package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// A tool is a program that tests use, with the Debian packages that have it.
type tool struct{ program, packages string }

// tools returns what the tiers above quick need. The race detector and the C programs of bench need a compiler. The others use
// servers from outside: strace counts their system calls, a browser, ssh and Mosquitto's clients visit them, HAProxy stands in
// front of them, and nginx is compared with them, over HTTP/2 by h2load. stage/postgres starts servers of its own, and leaves the
// one alone that Debian's package may start.
func tools() []tool {
	all := []tool{{"cc", "gcc libc6-dev"}, {"curl", "curl"}, {"wrk", "wrk"}, {"ssh", "openssh-client"},
		{"openssl", "openssl"}, {"initdb", "postgresql"}, {"psql", "postgresql-client"}, {"pgbouncer", "pgbouncer"}}
	if runtime.GOOS == "linux" {
		all = append(all, tool{"strace", "strace"}, tool{"chromium", "chromium"}, tool{"haproxy", "haproxy"}, tool{"nginx", "nginx-light"},
			tool{"h2load", "nghttp2-client"}, tool{"mosquitto_pub", "mosquitto-clients"})
	}
	return all
}

// install installs the tools that are missing, as root or with a sudo that asks for no password, where there is
// apt-get. Otherwise it says what is missing, and ends the program.
func install() {
	programs, packages := missing()
	if len(programs) == 0 {
		return
	}
	var root []string
	if os.Getuid() != 0 {
		root = []string{"sudo", "-n"}
	}
	_, err := exec.LookPath("apt-get")
	if err == nil && (root == nil || exec.Command("sudo", "-n", "true").Run() == nil) {
		os.Setenv("DEBIAN_FRONTEND", "noninteractive")
		// Another apt-get may be at work, as after the start of a machine, or a mirror be out of reach for a while.
		for _, pause := range []time.Duration{0, 10 * time.Second, 30 * time.Second, time.Minute} {
			time.Sleep(pause)
			aptGet(root, "update", "-q")
			aptGet(root, slices.Concat([]string{"install", "-qy", "--no-install-recommends"}, packages)...)
			if programs, packages = missing(); len(programs) == 0 {
				return
			}
		}
	}
	if len(programs) > 0 {
		stop(fmt.Sprintf("These tests need %s: on Debian, apt-get install %s.",
			strings.Join(programs, ", "), strings.Join(packages, " ")))
	}
}

// aptGet runs apt-get, which waits for five minutes for another one to have installed its packages. What is missing if it
// fails its caller sees.
func aptGet(root []string, arguments ...string) {
	arguments = slices.Concat(root, []string{"apt-get", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}, arguments)
	fmt.Println("$", strings.Join(arguments, " "))
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run()
}

func missing() (programs, packages []string) {
	for _, t := range tools() {
		if _, err := tier.Find(t.program); err != nil {
			programs, packages = append(programs, t.program), append(packages, strings.Fields(t.packages)...)
		}
	}
	return programs, packages
}
