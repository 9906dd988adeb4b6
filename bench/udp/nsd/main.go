// Command nsd runs nsd (Debian: apt-get install nsd) as it is measured: it writes the configuration and becomes nsd.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const config = `server:
  server-count: %d
  ip-address: %s
  do-ip6: no
  minimal-responses: yes
  rrl-ratelimit: 0
  username: ""
  zonesdir: ""
  database: ""
  pidfile: ""
  zonelistfile: "%[3]s/zone.list"
  xfrdfile: "%[3]s/xfrd.state"
remote-control:
  control-enable: no
zone:
  name: example.com
  zonefile: %[4]s
`

func main() {
	addr := flag.String("addr", "127.0.0.1:5353", "the address of the socket")
	reactors := flag.Int("reactors", 1, "server-count")
	zone := flag.String("zone", "", "the `file` with the records of example.com")
	dir := flag.String("dir", os.TempDir(), "the `directory` for what nsd writes")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix("nsd: ")
	log.Fatal(run(*addr, *reactors, *zone, *dir))
}

func run(addr string, servers int, zone, dir string) error {
	runtime.LockOSThread() // what prctl sets belongs to the thread
	program, err := exec.LookPath("nsd")
	if err != nil {
		program = "/usr/sbin/nsd" // where Debian installs it
	}
	path := filepath.Join(dir, "nsd.conf")
	text := fmt.Sprintf(config, servers, strings.Replace(addr, ":", "@", 1), dir, zone)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", program, unix.Exec(program, []string{"nsd", "-d", "-c", path}, os.Environ()))
}
