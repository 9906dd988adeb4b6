package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// look is what a page looks like.
type look struct {
	Title, Color, Module string
	Images               []struct {
		Complete bool
		Width    int
	}
}

func looks(t *testing.T, p *tab) look {
	t.Helper()
	return run[look](t, p, `() => ({
		Title: document.title,
		Color: getComputedStyle(document.querySelector("h1")).color,
		Module: document.body.dataset.module,
		Images: [...document.images].map(i => ({Complete: i.complete, Width: i.naturalWidth})),
	})`)
}

// loaded has a page of many files shown, and the server end while the browser keeps its connections.
func loaded(t *testing.T, p *tab) {
	s := serve(t, site(t))
	require.EqualValues(t, 200, p.visit(t, s.url("/files/")))
	seen := looks(t, p)
	require.Equal(t, "Pictures – 絵", seen.Title)
	require.Equal(t, "rgb(1, 2, 3)", seen.Color)
	require.Equal(t, "ran", seen.Module)
	require.Len(t, seen.Images, pictures)
	for i, image := range seen.Images {
		require.True(t, image.Complete, i)
		require.Equal(t, 8+3*i, image.Width, i)
	}
	require.Equal(t, 1+2+pictures, run[int](t, p, `() => performance.getEntriesByType("resource").filter(e => e.responseStatus === 200).length`))
	protocol := map[string]string{"http": "http/1.1", "https": "h2"}[s.scheme]
	require.Equal(t, protocol, run[string](t, p, `() => performance.getEntriesByType("navigation")[0].nextHopProtocol`))
	s.terminate(t)
	s.ends(t)
	require.Equal(t, "TypeError", run[string](t, p, `() => fetch("/").then(() => "it answers", e => e.name)`))
}
