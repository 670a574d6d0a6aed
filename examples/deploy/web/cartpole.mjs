// CartPole-v1 of Gymnasium, for a policy to play in a browser.

const GRAVITY = 9.8;
const CART = 1.0;
const POLE = 0.1;
const HALF_LENGTH = 0.5;
const FORCE = 10.0;
const SECONDS = 0.02;

/** Returns the state after a step: position, angle and their velocities. */
export function step([x, velocity, angle, spin], action) {
  const force = action === 1 ? FORCE : -FORCE;
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  const total = CART + POLE;
  const pushed = (force + POLE * HALF_LENGTH * spin ** 2 * sin) / total;
  const turned = (GRAVITY * sin - cos * pushed) /
    (HALF_LENGTH * (4 / 3 - (POLE * cos ** 2) / total));
  const moved = pushed - (POLE * HALF_LENGTH * turned * cos) / total;
  return [
    x + SECONDS * velocity,
    velocity + SECONDS * moved,
    angle + SECONDS * spin,
    spin + SECONDS * turned,
  ];
}

/** Plays an episode and returns its steps, 500 at most. */
export async function playCartPole(act) {
  let state = [0.01, -0.02, 0.03, -0.04];
  for (let steps = 0; steps < 500; ++steps) {
    state = step(state, await act(state));
    const [x, , angle] = state;
    if (Math.abs(x) > 2.4 || Math.abs(angle) > (12 * Math.PI) / 180) {
      return steps + 1;
    }
  }
  return 500;
}
