package microbench

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/lua"
)

// server is one of known prices, in µs per call: of save with 16 sagas. Its speed wanders
// from round to round, and each window has noise.
type server struct {
	network, dispatch, arguments, lua, rest float64
	commands                                map[string]float64
	noise                                   float64 // of a window, as a share
}

func (k server) measured(rounds int, rng *rand.Rand) *bench {
	whole, bare := k.dispatch+k.arguments+k.lua+k.rest, k.dispatch+k.arguments+k.lua
	inside := map[string]Inside{}
	for command, us := range k.commands {
		whole += us
		inside[strings.ToLower(command)] = Inside{Calls: 1, US: us}
	}
	s := base.batch(16)
	b := &bench{}
	add := func(key Key, us float64, inside map[string]Inside) {
		b.add(&callCase{Key: key})
		for round := 1; round <= rounds; round++ {
			speed := 1 + 0.3*math.Sin(float64(round))
			cpuUS := us * speed * math.Exp(k.noise*rng.NormFloat64())
			b.byKey[key].samples[round] = sample{calls: 1, sagas: 16, cpu: cpu{all: cpuUS, main: cpuUS}, inside: inside}
		}
	}
	script := func(variant string, s Shape) Key { return Key{Case: lua.Save.Name, Variant: variant, Shape: s} }
	add(script("", s), whole, inside)
	add(script("", s.with(16, 1)), whole+k.network, inside)
	add(script(empty, s), k.dispatch+k.arguments, nil)
	add(script(noCommands, s), bare, nil)
	for command, us := range k.commands {
		add(script(without+command, s), whole-us, nil)
	}
	add(Key{Case: ping, Shape: pingShape(s.Pipeline)}, k.dispatch, nil)
	return b
}

// trials are the breakdowns of as many measurements of the server.
func (k server) trials(t *testing.T, n, rounds int) (all []Breakdown) {
	rng := rand.New(rand.NewPCG(12, 15))
	for range n {
		one, ok := k.measured(rounds, rng).breakdown(lua.Save, base.batch(16))
		require.True(t, ok)
		all = append(all, one)
	}
	return all
}

func known(commands map[string]float64) server {
	return server{network: 160, dispatch: 8, arguments: 80, lua: 80, rest: 16, commands: commands, noise: 0.01}
}

// Each interval holds the true price about as often as it says. It is one of a median of
// differences, in µs of a server at its median speed, which is itself measured.
func TestBreakdown_IntervalsHoldTheTruth(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	k := known(map[string]float64{"SETNX": 320, "ZADD": 160, "TIME": 0})
	truth := map[string]float64{
		CauseNetwork: 10, CauseDispatch: 0.5, CauseArguments: 5, CauseLua: 5, CauseRest: 1,
		CauseCommand + "SETNX": 20, CauseCommand + "ZADD": 10, CauseCommand + "TIME": 0,
	}
	const trials = 300
	held := map[string]int{}
	for _, b := range k.trials(t, trials, 25) {
		scale := 664.0 / 16 / (b.TotalUS.Median - b.Parts[0].US.Median) // the speed in this measurement
		for _, p := range b.Parts {
			if want := truth[p.Cause+p.Command]; p.US.Low*scale <= want && want <= p.US.High*scale {
				held[p.Cause+p.Command]++
			}
		}
	}
	for cause := range truth {
		require.GreaterOrEqual(t, held[cause], trials*9/10, cause)
	}
}

func TestBreakdown_NamesTheCostliestLineOnlyIfItIsKnown(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const trials = 300
	named := func(k server, rounds int) map[string]int {
		all := map[string]int{}
		for _, b := range k.trials(t, trials, rounds) {
			answer, _, _ := strings.Cut(b.Costliest, ":")
			if !strings.HasPrefix(answer, "cannot tell") {
				answer = b.Costliest[strings.Index(b.Costliest, " ")+1:]
			}
			all[answer]++
		}
		return all
	}
	apart := named(known(map[string]float64{"SETNX": 320, "ZADD": 160, "TIME": 8}), 9)
	require.Equal(t, map[string]int{"SETNX": trials}, apart)

	alike := named(known(map[string]float64{"SETNX": 200, "ZADD": 200, "TIME": 8}), 9)
	require.GreaterOrEqual(t, alike["cannot tell which"], trials*95/100, alike)

	nothing := named(known(map[string]float64{"SETNX": 0, "ZADD": 0}), 9)
	require.GreaterOrEqual(t, nothing["cannot tell"]+nothing["cannot tell which"], trials*95/100, nothing)

	few := named(known(map[string]float64{"SETNX": 320, "ZADD": 8}), 5)
	require.Equal(t, map[string]int{"cannot tell": trials}, few)
}

func TestCostliest_SaysWhich(t *testing.T) {
	t.Parallel()
	part := func(command string, low, median, high float64) Part {
		return Part{Command: command, Line: "save.lua:1", US: Estimate{median, low, high, 9}}
	}
	require.Equal(t, "save.lua:1 SETNX", costliest([]Part{part("SETNX", 5, 6, 7), part("ZADD", 3, 4, 4.9)}))
	require.Equal(t, "cannot tell which: save.lua:1 SETNX, save.lua:1 ZADD", costliest([]Part{part("SETNX", 5, 6, 7), part("ZADD", 4, 5, 5), part("TIME", 0, 1, 2)}))
	require.Equal(t, "cannot tell: no command's price is above 0 for certain", costliest([]Part{part("SETNX", -1, 6, 7)}))
	require.Empty(t, costliest(nil))
}
