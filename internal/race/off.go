//go:build !race

package race

// Enabled is false: this build has no race detector.
const Enabled = false
