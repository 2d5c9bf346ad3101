// SPDX-License-Identifier: MIT
// GLUT without a window: the main loop draws a few times, presses the escape key, and ends.
#include "tools/check/program/include/GL/glut.h"

#include <cstdlib>

namespace {
void (*display)() = nullptr;
void (*idle)() = nullptr;
void (*keyboard)(unsigned char, int, int) = nullptr;
}  // namespace

extern "C" {

void glutInit(int*, char**) {}
void glutInitDisplayMode(unsigned) {}
void glutInitWindowSize(int, int) {}
void glutInitWindowPosition(int, int) {}
int glutCreateWindow(const char*) { return 1; }
void glutDisplayFunc(void (*function)()) { display = function; }
void glutIdleFunc(void (*function)()) { idle = function; }
void glutKeyboardFunc(void (*function)(unsigned char, int, int)) { keyboard = function; }
void glutMouseFunc(void (*)(int, int, int, int)) {}
void glutPostRedisplay() {}
void glutSwapBuffers() {}
void glClearColor(GLclampf, GLclampf, GLclampf, GLclampf) {}
void glClear(GLbitfield) {}
void glFlush() {}
void glDrawPixels(GLsizei, GLsizei, GLenum, GLenum, const void*) {}

void glutMainLoop() {
  constexpr int kFrames = 3;
  constexpr unsigned char kEscape = 27;
  for (int i = 0; i < kFrames; ++i) {
    if (display) display();
    if (!idle) break;
    idle();
  }
  if (keyboard) keyboard(kEscape, 0, 0);
  std::exit(0);
}

}  // extern "C"
