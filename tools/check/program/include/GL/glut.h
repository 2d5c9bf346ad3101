// SPDX-License-Identifier: MIT
// What programs need of GLUT and OpenGL to show an image. There is no window: glut.cpp.
#pragma once

#define GLUT_RGB 0
#define GLUT_RGBA 0
#define GLUT_SINGLE 0
#define GLUT_DOUBLE 2
#define GLUT_DEPTH 16
#define GLUT_LEFT_BUTTON 0
#define GLUT_MIDDLE_BUTTON 1
#define GLUT_RIGHT_BUTTON 2
#define GLUT_DOWN 0
#define GLUT_UP 1
#define GL_COLOR_BUFFER_BIT 0x4000
#define GL_DEPTH_BUFFER_BIT 0x0100
#define GL_UNSIGNED_BYTE 0x1401
#define GL_FLOAT 0x1406
#define GL_RGB 0x1907
#define GL_RGBA 0x1908

typedef unsigned GLenum, GLbitfield, GLuint;
typedef int GLint, GLsizei;
typedef float GLfloat, GLclampf;
typedef double GLdouble, GLclampd;
typedef unsigned char GLubyte, GLboolean;
typedef signed char GLbyte;
typedef short GLshort;
typedef unsigned short GLushort;
typedef void GLvoid;

extern "C" {
void glutInit(int* count, char** arguments);
void glutInitDisplayMode(unsigned mode);
void glutInitWindowSize(int width, int height);
void glutInitWindowPosition(int x, int y);
int glutCreateWindow(const char* title);
void glutDisplayFunc(void (*function)());
void glutIdleFunc(void (*function)());
void glutKeyboardFunc(void (*function)(unsigned char key, int x, int y));
void glutMouseFunc(void (*function)(int button, int state, int x, int y));
void glutPostRedisplay();
void glutSwapBuffers();
void glutMainLoop();
void glClearColor(GLclampf red, GLclampf green, GLclampf blue, GLclampf alpha);
void glClear(GLbitfield mask);
void glFlush();
void glDrawPixels(GLsizei width, GLsizei height, GLenum format, GLenum type, const void* pixels);
}
