//go:build race

package race

// Enabled is true: this build has the race detector.
const Enabled = true
