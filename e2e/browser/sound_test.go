package browser

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// sound lets the browser decide what it asks for, and when it has enough of it.
func sound(t *testing.T, p *tab) {
	root, file := t.TempDir(), silence(180)
	put(t, root, "silence.wav", file)
	start(t, p, root)
	require.Equal(t, []float64{180, 180, 170}, run[[]float64](t, p, `async () => {
		const audio = new Audio("/files/silence.wav");
		const wait = event => new Promise((resolve, reject) => {
			audio.addEventListener(event, resolve, {once: true});
			audio.addEventListener("error", () => reject(audio.error.message), {once: true});
		});
		await wait("canplay");
		const seekable = audio.seekable.end(0); // 0 without ranges
		audio.currentTime = 170;
		await wait("seeked");
		const seen = [audio.duration, seekable, audio.currentTime];
		audio.removeAttribute("src");
		audio.load(); // or its requests would stay, for more of the sound
		return seen;
	}`))
	furthest := 0
	for _, e := range p.exchanges(t) {
		if e.status == 0 || e.status == 304 {
			continue // given up before there was an answer; or of a part that the browser has: does it still hold?
		}
		require.EqualValues(t, 206, e.status)
		var from, to, size int
		_, err := fmt.Sscanf(fmt.Sprint(e.header["Content-Range"]), "bytes %d-%d/%d", &from, &to, &size)
		require.NoError(t, err)
		require.Equal(t, []int{len(file) - 1, len(file)}, []int{to, size})
		furthest = max(furthest, from)
	}
	require.Greater(t, furthest, len(file)*9/10, "it has skipped what is not heard")
}

// silence is a sound file of the kind WAVE: 44,100 times a second two samples of 16 bits.
func silence(seconds int) []byte {
	const rate, frame = 44100, 4
	size := seconds * rate * frame
	b := append(make([]byte, 0, 44+size), "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(36+size))
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00"...) // 16 bytes of format: PCM, two channels
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*frame)
	b = append(b, "\x04\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	return b[:cap(b)]
}
