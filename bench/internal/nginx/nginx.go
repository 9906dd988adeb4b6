// Package nginx finds nginx and prepares it to be measured.
package nginx

import (
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Places are where nginx is looked for. Debian installs it where only root's PATH looks.
var Places = []string{"nginx", "/usr/sbin/nginx"}

// ErrMissing is the error of Prepare if there is no nginx.
var ErrMissing = errors.New("it is not installed (Debian: apt-get install nginx-light)")

// Prepare makes s a server of nginx, of the given program or of the one that is installed. It pins its workers itself.
func Prepare(b build.Builder, s *server.Process, program string) (err error) {
	if program == "" {
		if program = installed(); program == "" {
			return ErrMissing
		}
	}
	s.Flags = append(s.Flags, "-program", program, "-prefix", filepath.Join(b.To, "prefix"))
	s.Workers = s.Reactors
	s.Program, err = b.Go("http/nginx")
	return err
}

func installed() string {
	for _, p := range Places {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	return ""
}
